#include "client/cpp/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/files.h"
#include "client/cpp/token.h"

namespace attune {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Bytes = std::unique_ptr<BIO, decltype(&BIO_free)>;

// Of a key that is encrypted nobody is asked for the password.
int NoPassword(char*, int, int, void*) { return 0; }

absl::Status Mistake(absl::string_view option, const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(option, " is '", path, "', ", what));
}

absl::StatusOr<std::string> Read(absl::string_view option, const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (text.ok()) return text;
  return Mistake(option, path, absl::StrCat("which cannot be read: ", text.status().message()));
}

// What `parse` makes of the PEM text in the file.
template <typename Parsed, typename Parse>
absl::StatusOr<Parsed> ReadPem(absl::string_view option, const std::string& path, absl::string_view wanted,
                               const Parse& parse) {
  const absl::StatusOr<std::string> text = Read(option, path);
  if (!text.ok()) return text.status();
  const Bytes bytes(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())), &BIO_free);
  Parsed parsed = parse(bytes.get());
  if (parsed == nullptr) return Mistake(option, path, absl::StrCat("which holds no ", wanted, " in PEM"));
  return parsed;
}

Certificate ParseCertificate(BIO* bytes) {
  return {PEM_read_bio_X509(bytes, nullptr, &NoPassword, nullptr), &X509_free};
}
Key ParseKey(BIO* bytes) { return {PEM_read_bio_PrivateKey(bytes, nullptr, &NoPassword, nullptr), &EVP_PKEY_free}; }

}  // namespace

bool IsEncrypted(absl::string_view server, const TlsOptions& options) {
  if (absl::StartsWith(server, "unix:") || options.insecure) return false;
  return !IsLocal(server) || options != TlsOptions();
}

absl::Status CheckTls(const TlsOptions& options) {
  const absl::Cleanup forget = [] { ERR_clear_error(); };
  if (options.insecure && options != TlsOptions{.insecure = true}) {
    return absl::InvalidArgumentError("insecure is set together with other TLS options; allowed: one or the other");
  }
  if (options.certificate.empty() != options.key.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("tls_cert is '", options.certificate, "' and tls_key is '",
                                                   options.key, "'; allowed: both or neither"));
  }
  if (!options.ca.empty()) {
    const auto ca = ReadPem<Certificate>("tls_ca", options.ca, "certificate", ParseCertificate);
    if (!ca.ok()) return ca.status();
  }
  if (options.certificate.empty()) return absl::OkStatus();
  const auto own = ReadPem<Certificate>("tls_cert", options.certificate, "certificate", ParseCertificate);
  if (!own.ok()) return own.status();
  const auto key = ReadPem<Key>("tls_key", options.key, "unencrypted private key", ParseKey);
  if (!key.ok()) return key.status();
  if (X509_check_private_key(own->get(), key->get()) == 1) return absl::OkStatus();
  return Mistake("tls_key", options.key, absl::StrCat("which is not the key of tls_cert, '", options.certificate, "'"));
}

}  // namespace attune
