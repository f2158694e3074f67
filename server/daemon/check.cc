#include "server/daemon/check.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "proto/attune/quote.h"
#include "server/access/tokens.h"
#include "server/base/cage_kernel.h"
#include "server/daemon/chosen_devices.h"
#include "server/daemon/writable_directory.h"
#include "server/space/family.h"
#include "server/store/postgresql/upkeep/check_database.h"
#include "server/store/sqlite/maintenance/check_store.h"

namespace attune {
namespace {

// "manifests  12 kernel families in kernels_src", and below it one line a mistake.
bool Report(std::ostream& report, absl::string_view part, const std::string& summary,
            const std::vector<std::string>& mistakes) {
  report << absl::StreamFormat("%-10s %s", part, mistakes.empty() ? "ok" : "WRONG");
  if (!summary.empty()) report << ": " << summary;
  report << "\n";
  for (const std::string& mistake : mistakes) report << "  " << mistake << "\n";
  return mistakes.empty();
}

std::vector<std::string> MistakesInFlags(const Settings& settings, bool parsed, const ProbeForCheck& probe) {
  std::vector<std::string> mistakes = MistakesIn(settings);
  if (!parsed) mistakes.emplace_back("those that standard error names are unknown or cannot be parsed");
  if (const std::string why = WhyNotMade(settings.lock_dir); !why.empty()) {
    mistakes.push_back(absl::StrCat("--lock_dir: ", why));
  }
  if (settings.devices.empty()) return mistakes;
  const absl::StatusOr<supervisor::HostDescription> host = probe();
  if (!host.ok()) {
    mistakes.push_back(absl::StrCat("--devices: the host could not be probed: ", host.status().message()));
    return mistakes;
  }
  const ChosenDevices chosen = ChooseDevices(settings.devices, *host);
  for (const std::string& name : chosen.unknown) {
    mistakes.push_back(
        absl::StrCat("--devices has ", Quoted(name), "; this host has ", chosen.here.empty() ? "none" : chosen.here));
  }
  return mistakes;
}

bool CheckManifests(const Settings& settings, std::ostream& report) {
  const space::LoadedFamilies loaded = space::LoadEveryFamily(settings.kernels_dir);
  std::vector<std::string> mistakes;
  for (const absl::Status& mistake : loaded.mistakes) mistakes.emplace_back(mistake.message());
  const std::string where = absl::StrJoin(settings.kernels_dir, ", ");
  if (loaded.families.empty() && mistakes.empty()) {
    mistakes.push_back(absl::StrCat("there is no family in ", where, "; nothing could be tuned"));
  }
  const size_t count = loaded.families.size();
  return Report(report, "manifests",
                absl::StrCat(count, count == 1 ? " good kernel family in " : " good kernel families in ", where),
                mistakes);
}

bool CheckTheDatabase(const Settings& settings, std::ostream& report) {
  const auto found = store::postgresql::CheckDatabase({.target = settings.store});
  if (!found.ok()) return Report(report, "store", "", {std::string(found.status().message())});
  std::string summary = absl::StrCat(found->where, ", ");
  if (found->version == 0) {
    absl::StrAppend(&summary, "tables to be made");
  } else {
    absl::StrAppend(&summary, "schema version ", found->version);
    if (found->version < found->newest) {
      absl::StrAppend(&summary, ", to be brought to ", found->newest);
    } else {
      absl::StrAppend(&summary, ", ", found->trials, found->trials == 1 ? " trial" : " trials");
    }
  }
  const std::string impediment = WhyNotMade(settings.data_dir);
  if (!impediment.empty()) return Report(report, "store", summary, {absl::StrCat("--data_dir: ", impediment)});
  return Report(report, "store", summary, {});
}

bool CheckTheStore(const Settings& settings, std::ostream& report) {
  if (!settings.store.empty()) return CheckTheDatabase(settings, report);
  const absl::StatusOr<store::StoreReport> found = store::CheckStore(settings.data_dir);
  if (!found.ok()) return Report(report, "store", settings.data_dir, {std::string(found.status().message())});
  std::string summary = absl::StrCat(settings.data_dir, ", ");
  if (!found->exists) {
    const std::string impediment = WhyNotMade(settings.data_dir);
    if (!impediment.empty()) return Report(report, "store", settings.data_dir, {impediment});
    absl::StrAppend(&summary, "to be made");
  } else if (!found->in_use.empty()) {
    absl::StrAppend(&summary, "not looked into: ", found->in_use);
  } else {
    absl::StrAppend(&summary, "undamaged, ", found->trials, found->trials == 1 ? " trial" : " trials",
                    ", schema version ", found->version);
    if (found->version < found->newest) absl::StrAppend(&summary, ", to be brought to ", found->newest);
  }
  return Report(report, "store", summary, {});
}

bool CheckTokens(const Settings& settings, std::ostream& report) {
  const auto tokens = access::Tokens::Open(absl::StrCat(settings.data_dir, "/tokens.binpb"));
  if (!tokens.ok()) return Report(report, "tokens", "", {std::string(tokens.status().message())});
  int expired = 0;
  const std::vector<v1::Token> all = (*tokens)->List();
  for (const v1::Token& token : all) {
    expired +=
        google::protobuf::util::TimeUtil::TimestampToNanoseconds(token.expire_time()) < absl::ToUnixNanos(absl::Now())
            ? 1
            : 0;
  }
  return Report(report, "tokens", absl::StrCat(all.size(), expired == 0 ? "" : absl::StrCat(", expired: ", expired)),
                {});
}

std::string ToolchainsOf(const supervisor::HostDescription& host) {
  return absl::StrJoin(host.backends, "; ", [](std::string* out, const v1::BackendStatus& backend) {
    const absl::string_view name = absl::StripPrefix(v1::Backend_Name(backend.backend()), "BACKEND_");
    absl::StrAppend(out, name, backend.available() ? " " : " missing: ",
                    backend.available() ? backend.compiler() : backend.reason());
  });
}

// A daemon starts without any of it, and says then what is said here. Without a probe it could do no work at all.
bool CheckHost(const Settings& settings, const ProbeForCheck& probe, std::ostream& report) {
  const absl::StatusOr<supervisor::HostDescription> host = probe();
  if (!host.ok()) {
    return Report(report, "host", "", {absl::StrCat("it could not be probed: ", host.status().message())});
  }
  Report(report, "toolchains", ToolchainsOf(*host), {});
  const ChosenDevices chosen = ChooseDevices(settings.devices, *host);
  Report(report, "devices",
         chosen.host.devices.empty()
             ? "none: stored answers are served, and only other hosts on the same store can tune"
             : chosen.here,
         {});
  const std::vector<std::string> missing = MissingWalls();
  Report(report, "cage", missing.empty() ? "whole" : absl::StrCat("not whole: ", absl::StrJoin(missing, "; ")), {});
  return true;
}

// The probe is a process that opens drivers: it is asked once.
ProbeForCheck Once(const ProbeForCheck& probe) {
  return [&probe, known = std::optional<absl::StatusOr<supervisor::HostDescription>>()]() mutable {
    if (!known.has_value()) known = probe();
    return *known;
  };
}

}  // namespace

absl::StatusOr<Checks> ParseChecks(absl::string_view text) {
  if (text == "all") return Checks{.flags = true, .manifests = true, .store = true, .tokens = true, .host = true};
  Checks checks;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    if (part == "flags") {
      checks.flags = true;
    } else if (part == "manifests") {
      checks.manifests = true;
    } else if (part == "store") {
      checks.store = true;
    } else if (part == "tokens") {
      checks.tokens = true;
    } else if (part == "host") {
      checks.host = true;
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "--check is ", Quoted(text), "; allowed: all, or some of flags, manifests, store, tokens and host"));
    }
  }
  return checks;
}

bool Check(const Settings& settings, const Checks& checks, const ProbeForCheck& probe, std::ostream& report) {
  const ProbeForCheck once = Once(probe);
  bool good = true;
  if (checks.flags) good = Report(report, "flags", "", MistakesInFlags(settings, checks.flags_parsed, once)) && good;
  if (checks.manifests) good = CheckManifests(settings, report) && good;
  if (checks.store) good = CheckTheStore(settings, report) && good;
  if (checks.tokens) good = CheckTokens(settings, report) && good;
  if (checks.host) good = CheckHost(settings, once, report) && good;
  return good;
}

}  // namespace attune
