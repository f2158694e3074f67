#include "client/dashboard/http_message.h"

#include <openssl/sha.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace attune::dashboard {
namespace {

constexpr size_t kLeastCompressed = 512;  // bytes; less fits a packet either way
constexpr int kGzip = 16;                 // added to zlib's window bits: with a header of gzip

// Empty when it would not be shorter.
std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return whole && out.size() < bytes.size() ? out : "";
}

std::string EtagOf(const std::string& bytes) {
  uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digest);
  return absl::StrCat("W/\"", absl::BytesToHexString({reinterpret_cast<const char*>(digest), 16}), "\"");
}

}  // namespace

bool IgnoreCase::operator()(absl::string_view a, absl::string_view b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return absl::ascii_tolower(static_cast<unsigned char>(x)) < absl::ascii_tolower(static_cast<unsigned char>(y));
  });
}

std::string HttpRequest::header(absl::string_view name) const {
  const auto found = headers.find(std::string(name));
  return found == headers.end() ? "" : found->second;
}

ContentPtr MakeContent(std::string type, std::string bytes) {
  auto content = std::make_shared<Content>();
  content->type = std::move(type);
  content->etag = EtagOf(bytes);
  if (bytes.size() >= kLeastCompressed && bytes.size() < UINT32_MAX) content->gzip = Gzip(bytes);
  content->plain = std::move(bytes);
  return content;
}

}  // namespace attune::dashboard
