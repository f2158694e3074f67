#include "server/access/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/attune/quote.h"
#include "server/store/files.h"

namespace attune::access {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Bytes = std::unique_ptr<BIO, decltype(&BIO_free)>;

constexpr char kCertificateWanted[] = "a PEM file with the server's certificate, its chain behind it";
constexpr char kKeyWanted[] = "a PEM file with the unencrypted private key of --tls_cert";
constexpr char kCaWanted[] = "a PEM file with the certificates of who signs clients' certificates";

Bytes BytesOf(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

// Of a key that is encrypted nobody is asked for the password.
int NoPassword(char*, int, int, void*) { return 0; }

absl::Time EndOf(const X509& certificate) {
  tm end = {};
  ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &end);
  return absl::FromTM(end, absl::UTCTimeZone());
}

class TlsMistakes {
 public:
  // The file's text; empty when it cannot be read, which is noted.
  std::string Read(absl::string_view flag, const std::string& path, absl::string_view wanted) {
    absl::StatusOr<std::string> text = store::ReadFile(path);
    if (text.ok()) return *std::move(text);
    Add(flag, path, absl::StrCat(" (", text.status().message(), ")"), wanted);
    return "";
  }
  Certificate ParseCertificate(absl::string_view flag, const std::string& path, absl::string_view wanted,
                               absl::Time now) {
    Certificate certificate(nullptr, &X509_free);
    const size_t before = all.size();
    const std::string text = Read(flag, path, wanted);
    if (all.size() > before) return certificate;
    certificate.reset(PEM_read_bio_X509(BytesOf(text).get(), nullptr, &NoPassword, nullptr));
    if (certificate == nullptr) {
      Add(flag, path, ", which holds no certificate", wanted);
    } else if (const absl::Time end = EndOf(*certificate); end <= now) {
      Add(flag, path,
          absl::StrCat(", which expired ", absl::FormatTime("%Y-%m-%d %H:%M", end, absl::UTCTimeZone()), " UTC"),
          wanted);
    }
    return certificate;
  }
  Key ParseKey(const std::string& path) {
    Key key(nullptr, &EVP_PKEY_free);
    const size_t before = all.size();
    const std::string text = Read("tls_key", path, kKeyWanted);
    if (all.size() > before) return key;
    key.reset(PEM_read_bio_PrivateKey(BytesOf(text).get(), nullptr, &NoPassword, nullptr));
    if (key == nullptr) Add("tls_key", path, ", which holds no private key, or an encrypted one", kKeyWanted);
    return key;
  }
  void Add(absl::string_view flag, const std::string& path, absl::string_view what, absl::string_view wanted) {
    all.push_back(absl::StrCat(flag, " is ", Quoted(path), what, "; it must name ", wanted));
  }

  std::vector<std::string> all;
};

}  // namespace

std::vector<std::string> MistakesIn(const TlsFiles& files, absl::Time now) {
  TlsMistakes mistakes;
  if (files.certificate.empty()) {
    for (const auto& [flag, path] : {std::pair("tls_key", files.key), std::pair("tls_client_ca", files.client_ca)}) {
      if (path.empty()) continue;
      mistakes.all.push_back(absl::StrCat(flag, " is ", Quoted(path),
                                          ", without --tls_cert; TLS needs --tls_cert and "
                                          "--tls_key"));
    }
    return std::move(mistakes.all);
  }
  const Certificate certificate = mistakes.ParseCertificate("tls_cert", files.certificate, kCertificateWanted, now);
  const Key key = mistakes.ParseKey(files.key);
  if (certificate != nullptr && key != nullptr && X509_check_private_key(certificate.get(), key.get()) != 1) {
    mistakes.Add("tls_key", files.key,
                 absl::StrCat(", which is not the key of --tls_cert, ", Quoted(files.certificate)), kKeyWanted);
  }
  if (!files.client_ca.empty()) mistakes.ParseCertificate("tls_client_ca", files.client_ca, kCaWanted, now);
  ERR_clear_error();
  return std::move(mistakes.all);
}

}  // namespace attune::access
