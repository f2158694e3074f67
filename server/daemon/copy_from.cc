#include "server/daemon/copy_from.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/daemon/opened_store.h"
#include "server/store/copy/copy_store.h"

namespace attune {
namespace {

void Print(const store::CopyReport& copied, std::ostream& report) {
  report << "copied " << copied.from << " to " << copied.to << "; read in both and found the same:\n";
  for (const auto& [table, rows] : copied.rows) report << absl::StreamFormat("  %-17s %d\n", table, rows);
  report << absl::StreamFormat("  %-17s %d\n  %-17s %d\n  %-17s %d\n", "files of code", copied.artifacts,
                               "files of blobs", copied.blobs, "bytes of both", copied.bytes);
  for (const std::string& why : copied.left_out) {
    report << "  left out, until it is compiled or put again: " << why << "\n";
  }
  if (!copied.live_hosts.empty()) {
    report << "  not copied: what " << absl::StrJoin(copied.live_hosts, ", ") << " wrote since this began\n";
  }
  if (!copied.home.empty()) {
    report << "  unfinished operations are those of " << copied.home << ": the daemon with --data_dir=" << copied.from
           << " goes on with them, when it is started with --store\n";
  }
}

}  // namespace

int CopyFrom(const std::string& from, const Settings& settings, std::ostream& report, std::ostream& progress) {
  store::CopyOptions options;
  options.from = store::ParseStoreAddress(from);
  options.to = settings.store.empty() ? store::StoreAddress{.directory = settings.data_dir}
                                      : store::StoreAddress{.database = settings.store};
  options.home = [&options] { return NameOfDaemon(options.from.directory); };
  options.progress = [&progress](const std::string& line) { progress << "attuned: " << line << std::endl; };
  std::vector<std::string> mistakes = MistakesInStore(settings);
  if (absl::Status fit = store::CheckAddresses(options.from, options.to); mistakes.empty() && !fit.ok()) {
    mistakes.push_back(absl::StrCat("--copy_from, to --store or else --data_dir: ", fit.message()));
  }
  for (const std::string& mistake : mistakes) progress << "attuned: " << mistake << "\n";
  if (!mistakes.empty()) return 2;
  const absl::StatusOr<store::CopyReport> copied = store::CopyStore(options);
  if (!copied.ok()) {
    progress << "attuned: " << copied.status().message() << "\n";
    return 1;
  }
  Print(*copied, report);
  return 0;
}

}  // namespace attune
