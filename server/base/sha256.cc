#include "server/base/sha256.h"

#include <openssl/sha.h>

#include "absl/strings/escaping.h"

namespace attune {

std::string Sha256(absl::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), sizeof digest});
}

}  // namespace attune
