#include "server/service/blobs/blob_requests.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"

namespace attune::service {
namespace {

constexpr size_t kMostNamespaceBytes = 64;
constexpr size_t kMostFilesAsked = 64;
constexpr absl::string_view kSelf = "self";

absl::Status CheckNamespace(absl::string_view text) {
  const bool allowed = !text.empty() && text.size() <= kMostNamespaceBytes && absl::ascii_isalnum(text[0]) &&
                       std::all_of(text.begin(), text.end(),
                                   [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-'; });
  if (allowed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("namespace is ", Quoted(text), "; allowed: 1 to ", kMostNamespaceBytes,
                                                 " letters, digits, '.', '_' and '-', the first a letter or digit"));
}

bool IsPrintable(absl::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) { return absl::ascii_iscntrl(c); });
}

absl::Status CheckKey(absl::string_view text) {
  if (IsPrintable(text)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("key is ", Quoted(text), "; allowed: 1 to 256 bytes without control characters"));
}

// Clients write what they are given under this name.
absl::Status CheckFile(const std::string& field, absl::string_view text) {
  if (IsPrintable(text) && text != "." && text != ".." && text.find('/') == absl::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", Quoted(text),
                                                 "; allowed: a file name of 1 to 256 bytes without '/' and control "
                                                 "characters"));
}

}  // namespace

absl::Status Validate(const v1::GetBlobsRequest& request) {
  if (absl::Status status = CheckNamespace(request.namespace_()); !status.ok()) return status;
  if (absl::Status status = CheckKey(request.key()); !status.ok()) return status;
  if (request.files().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("files has 0 entries; allowed: 1 to ", kMostFilesAsked));
  }
  for (int i = 0; i < request.files_size(); ++i) {
    if (absl::Status status = CheckFile(absl::StrCat("files[", i, "]"), request.files(i)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Validate(const v1::PutBlobRequest& request) {
  if (absl::Status status = CheckNamespace(request.namespace_()); !status.ok()) return status;
  if (absl::Status status = CheckKey(request.key()); !status.ok()) return status;
  return CheckFile("file", request.file());
}

std::string OwnerOf(absl::string_view named, const access::Principal& caller) {
  return named == kSelf ? caller.name : std::string(named);
}

bool MayRead(const v1::Blob& blob, const access::Principal& caller) {
  return blob.shared() || blob.principal() == caller.name || caller.role == access::Role::kAdmin;
}

store::BlobFilter FilterFor(const v1::ListBlobsRequest& request, const access::Principal& caller) {
  return {.principal = OwnerOf(request.principal(), caller),
          .cache = request.namespace_(),
          .key = request.key(),
          .reader = caller.role == access::Role::kAdmin ? "" : caller.name};
}

}  // namespace attune::service
