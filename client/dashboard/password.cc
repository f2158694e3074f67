#include "client/dashboard/password.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/files.h"
#include "client/dashboard/errors.h"
#include "proto/attune/quote.h"

namespace attune::dashboard {
namespace {

constexpr size_t kShortest = 12;

std::vector<uint8_t> HashOf(absl::string_view text) {
  std::vector<uint8_t> hash(SHA256_DIGEST_LENGTH);
  SHA256(reinterpret_cast<const uint8_t*>(text.data()), text.size(), hash.data());
  return hash;
}

}  // namespace

Password::Password(const std::string& text) : hash_(HashOf(text)) {}

absl::StatusOr<Password> Password::Read(const std::string& path) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--password-file is ", Quoted(path), ", ", what,
        "; allowed: a file that others may not open, with one line of at least ", kShortest, " characters"));
  };
  struct stat file = {};
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok() || stat(path.c_str(), &file) != 0) return wrong("which cannot be read");
  if ((file.st_mode & (S_IRWXO | S_IWGRP)) != 0) return wrong("which other users may open");
  const std::string password(absl::StripAsciiWhitespace(*text));
  if (password.size() < kShortest) return wrong("which is too short");
  if (std::any_of(password.begin(), password.end(), [](unsigned char c) { return absl::ascii_iscntrl(c); })) {
    return wrong("which has several lines");
  }
  return Password(password);
}

bool Password::Matches(const HttpRequest& request) const {
  const std::string header = request.header("Authorization");
  std::string decoded;
  if (!absl::StartsWithIgnoreCase(header, "Basic ") ||
      !absl::Base64Unescape(absl::StripAsciiWhitespace(absl::string_view(header).substr(6)), &decoded)) {
    return false;
  }
  const size_t colon = decoded.find(':');
  if (colon == std::string::npos) return false;
  const std::vector<uint8_t> hash = HashOf(absl::string_view(decoded).substr(colon + 1));
  return CRYPTO_memcmp(hash.data(), hash_.data(), hash_.size()) == 0;
}

HttpResponse Password::Ask() {
  HttpResponse response = ErrorResponse(401, "UNAUTHENTICATED", "the dashboard asks for its password");
  response.headers.emplace_back("WWW-Authenticate", "Basic realm=\"attune\", charset=\"UTF-8\"");
  return response;
}

}  // namespace attune::dashboard
