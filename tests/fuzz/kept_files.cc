// The small files that a daemon keeps beside its store: the host it remembers, its tokens, a backup's manifest. Each
// reader is given the same bytes.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/access/tokens.h"
#include "server/store/backups.h"
#include "server/supervisor/remembered_host.h"
#include "tests/fuzz/scratch_file.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

constexpr size_t kSlots = 4096;

void ReadHost(absl::string_view bytes) {
  const auto host = supervisor::ReadHost(bytes);
  if (!host.ok()) return ExpectRefusal(host.status(), absl::StatusCode::kDataLoss, {"host"});
  const auto again = supervisor::ReadHost(supervisor::WriteHost(*host));
  Expect(again.ok() && supervisor::SameHost(*host, *again), "a host reads back as itself");
}

void ReadTokens(absl::string_view bytes) {
  const ScratchFile file(bytes);
  const auto tokens = access::Tokens::Open(file.path(), kSlots);
  if (!tokens.ok()) return ExpectRefusal(tokens.status(), absl::StatusCode::kDataLoss, {file.path()});
  Expect((*tokens)->List().size() <= access::Tokens::kMostTokens, "there are no more tokens than allowed");
  const auto found = (*tokens)->Find("attune_guess", absl::UnixEpoch());
  ExpectRefusal(found.status(), absl::StatusCode::kUnauthenticated, {"token"});
}

// One directory, with one backup.
void ReadManifest(absl::string_view bytes) {
  static const std::string directory = absl::StrCat("/dev/shm/attune-fuzz-backups-", getpid());
  std::filesystem::create_directories(absl::StrCat(directory, "/one"));
  std::ofstream(absl::StrCat(directory, "/one/", store::kManifestFile), std::ios::binary) << bytes;
  store::Backups backups(nullptr, directory);
  const auto listed = backups.List(0, "");
  Expect(listed.ok() && listed->items.size() <= 1,
         absl::StrCat("a damaged backup ends no list; got ", listed.status().ToString()));
  std::filesystem::remove_all(directory);
}

ATTUNE_FUZZ_TARGET(kept_files) {
  ReadHost(input);
  ReadTokens(input);
  ReadManifest(input);
}

}  // namespace
}  // namespace attune::fuzz
