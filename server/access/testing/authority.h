// Certificates for tests, of an authority of their own.
#ifndef ATTUNE_SERVER_ACCESS_TESTING_AUTHORITY_H_
#define ATTUNE_SERVER_ACCESS_TESTING_AUTHORITY_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace attune::access {

struct Issued {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

class Authority {
 public:
  explicit Authority(const std::string& name);

  // Its own certificate, PEM.
  const std::string& certificate() const { return own_.certificate; }
  // For the subject with this common name (empty: none), and for the server names localhost and 127.0.0.1. Negative
  // `lifetime`: expired.
  Issued Issue(const std::string& common_name, absl::Duration lifetime = absl::Hours(1)) const;

 private:
  const std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> root_;
  Issued own_;
};

}  // namespace attune::access

#endif  // ATTUNE_SERVER_ACCESS_TESTING_AUTHORITY_H_
