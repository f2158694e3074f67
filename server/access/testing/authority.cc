#include "server/access/testing/authority.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace attune::access {
namespace {

std::shared_ptr<EVP_PKEY> NewKey() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

template <typename Write>
std::string Pem(const Write& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bytes(BIO_new(BIO_s_mem()), &BIO_free);
  write(bytes.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(bytes.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string Pem(X509* certificate) {
  return Pem([certificate](BIO* to) { PEM_write_bio_X509(to, certificate); });
}

std::string Pem(EVP_PKEY* key) {
  return Pem([key](BIO* to) { PEM_write_bio_PrivateKey(to, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

void Extend(X509* certificate, int which, const char* value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, which, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Not signed yet.
std::shared_ptr<X509> NewCertificate(const std::string& common_name, EVP_PKEY* key, absl::Duration lifetime) {
  const std::shared_ptr<X509> certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -7200);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), absl::ToInt64Seconds(lifetime));
  X509_set_pubkey(certificate.get(), key);
  if (common_name.empty()) return certificate;
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  return certificate;
}

}  // namespace

Authority::Authority(const std::string& name)
    : key_(NewKey()), root_(NewCertificate(name, key_.get(), absl::Hours(2))) {
  X509_set_issuer_name(root_.get(), X509_get_subject_name(root_.get()));
  Extend(root_.get(), NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(root_.get(), key_.get(), EVP_sha256());
  own_ = {Pem(root_.get()), Pem(key_.get())};
}

Issued Authority::Issue(const std::string& common_name, absl::Duration lifetime) const {
  const std::shared_ptr<EVP_PKEY> key = NewKey();
  const std::shared_ptr<X509> certificate = NewCertificate(common_name, key.get(), lifetime);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(root_.get()));
  Extend(certificate.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  X509_sign(certificate.get(), key_.get(), EVP_sha256());
  return {Pem(certificate.get()), Pem(key.get())};
}

}  // namespace attune::access
