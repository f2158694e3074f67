// The texts that flags, options and small files take; each reader is given the same one.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "client/cpp/token.h"
#include "server/access/certificates.h"
#include "server/access/role.h"
#include "server/base/byte_size.h"
#include "server/service/listen_address.h"
#include "server/store/page_token.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

void ReadSize(absl::string_view text) {
  ByteSize size;
  std::string error;
  if (!AbslParseFlag(text, &size, &error)) return Expect(!error.empty(), "a size that is refused is told why");
  ByteSize again;
  Expect(size.bytes >= 0 && AbslParseFlag(AbslUnparseFlag(size), &again, &error) && again.bytes == size.bytes,
         "a size reads back as itself");
}

void ReadAddress(absl::string_view text) {
  const auto address = service::ParseListenAddress(text);
  if (!address.ok()) return ExpectRefusal(address.status(), absl::StatusCode::kInvalidArgument, {"'"});
  Expect(address->path.empty() != address->host.empty(), "an address is a path or a host");
  Expect(address->path.find('\0') == std::string::npos, "a path ends where it seems to");
}

void ReadRole(absl::string_view text) {
  const auto role = access::ParseRole(text);
  if (!role.ok()) return ExpectRefusal(role.status(), absl::StatusCode::kInvalidArgument, {"'", "reader"});
  Expect(access::RoleName(*role) == text, "a role has one name");
}

void ReadCertificate(absl::string_view text) {
  access::Certificates certificates(access::Role::kNone);
  const absl::Status status = certificates.Assign({std::string(text)});
  if (!status.ok()) return ExpectRefusal(status, absl::StatusCode::kInvalidArgument, {"'"});
  const auto principal = certificates.Of(text.substr(0, text.rfind('=')));
  Expect(principal.ok() && absl::StartsWith(principal->name, "cert:"), "a certificate that has a role is one");
}

void ReadToken(absl::string_view text) {
  const auto token = TokenIn(text, "file");
  if (!token.ok()) return ExpectRefusal(token.status(), absl::StatusCode::kInvalidArgument, {"file"});
  Expect(token->find_first_of(std::string(" \r\n\0", 4)) == std::string::npos, "a token is a header's value");
}

void ReadPageToken(absl::string_view text) {
  const auto key = store::DecodePageToken("a listing", text);
  if (!key.ok()) return ExpectRefusal(key.status(), absl::StatusCode::kInvalidArgument, {"page_token is '"});
  if (!key->has_value()) return;
  const auto again = store::DecodePageToken("a listing", store::EncodePageToken("a listing", **key));
  Expect(again.ok() && again->has_value() && (*again)->id == (*key)->id, "a page token reads back as itself");
}

ATTUNE_FUZZ_TARGET(flags) {
  ReadSize(input);
  ReadAddress(input);
  ReadRole(input);
  ReadCertificate(input);
  ReadToken(input);
  ReadPageToken(input);
  (void)IsLocal(input);
}

}  // namespace
}  // namespace attune::fuzz
