#include "server/store/page_token.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"
#include "server/base/sha256.h"

namespace attune::store {
namespace {

// id (8 bytes) and rank (8), then the first bytes of a hash that ties them to the listing. The hash keeps out mistakes,
// not attackers: a forged token reads no more than its listing would.
constexpr size_t kKeyBytes = 16;
constexpr size_t kCheckBytes = 8;

std::string Check(absl::string_view listing, absl::string_view key) {
  return absl::HexStringToBytes(Sha256(absl::StrCat(listing.size(), ":", listing, key))).substr(0, kCheckBytes);
}

}  // namespace

std::string EncodePageToken(absl::string_view listing, const PageKey& last) {
  std::string key(kKeyBytes, '\0');
  std::memcpy(key.data(), &last.id, 8);
  std::memcpy(key.data() + 8, &last.rank, 8);
  return absl::WebSafeBase64Escape(absl::StrCat(key, Check(listing, key)));
}

absl::StatusOr<std::optional<PageKey>> DecodePageToken(absl::string_view listing, absl::string_view token) {
  if (token.empty()) return std::nullopt;
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(token, &bytes) || bytes.size() != kKeyBytes + kCheckBytes ||
      bytes.substr(kKeyBytes) != Check(listing, bytes.substr(0, kKeyBytes))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "page_token is ", Quoted(token), "; allowed is the next_page_token of an answer to the same filter and order"));
  }
  PageKey key;
  std::memcpy(&key.id, bytes.data(), 8);
  std::memcpy(&key.rank, bytes.data() + 8, 8);
  return key;
}

int PageSize(int requested) { return requested <= 0 ? kDefaultPageSize : std::min(requested, kMostPageSize); }

}  // namespace attune::store
