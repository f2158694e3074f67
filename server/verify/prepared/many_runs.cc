#include "server/verify/prepared/many_runs.h"

#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/verify/prepared/poisoned_run.h"

namespace attune::verify {
namespace {

// Over all cases.
constexpr int kLeastRuns = 64;
constexpr int kMostRuns = 1000;
// Of a case's runs the host compares the first and every so many-th altogether: an odd number, so that its looks
// alternate between the two poisons.
constexpr int kHostRuns = 101;
static_assert(kHostRuns % std::size(kPoisons) != 0);

}  // namespace

absl::StatusOr<Finding> ManyRuns::Of(LoadedCandidate& candidate, const Case& checked, bool deterministic) {
  absl::StatusOr<std::unique_ptr<device::Runnable>> runnable = candidate.Bind(outputs_.BoundTo(checked.buffers));
  if (!runnable.ok()) return runnable.status();
  const absl::Duration until = SteadyNow() + most_ / cases_;
  std::optional<OutputDigests> seen;  // what the host has seen of the first run
  for (int run = 0; run * cases_ < kMostRuns; ++run) {
    if (run * cases_ >= kLeastRuns && SteadyNow() >= until) break;
    const absl::StatusOr<absl::Duration> ran =
        RunPoisoned(device_, candidate, outputs_, **runnable, kPoisons[run % std::size(kPoisons)]);
    if (!ran.ok()) return ran.status();
    if (seen.has_value() && run % kHostRuns != 0) {
      const absl::StatusOr<bool> held = outputs_.Hold(*seen, *inspection_);
      if (!held.ok()) return held.status();
      if (*held) continue;
    }
    OutputSnapshot& result = run == 0 ? first_ : later_;
    if (absl::Status status = outputs_.Download(result); !status.ok()) return status;
    if (run == 0 && inspection_ != nullptr) seen = OutputDigests(result, *inspection_);
    Finding finding = Compare(result, checked, /*is_first=*/run == 0, deterministic);
    if (finding.ok()) continue;
    finding.detail = absl::StrCat("run ", run + 1, ": ", finding.detail);
    return finding;
  }
  absl::StatusOr<std::string> damage = candidate.ScratchDamage(/*inspection=*/nullptr);
  if (!damage.ok()) return damage.status();
  return damage->empty() ? Finding() : Finding{v1::VERDICT_OUT_OF_BOUNDS, *std::move(damage)};
}

Finding ManyRuns::Compare(const OutputSnapshot& result, const Case& checked, bool is_first, bool deterministic) const {
  if (std::string damage = result.Damage(); !damage.empty()) {
    return {v1::VERDICT_OUT_OF_BOUNDS, std::move(damage)};
  }
  if (!is_first && result.SameBits(first_)) return {};
  v1::Accuracy unused;
  Finding finding = CompareWith(problem_, result, checked, unused);
  if (!finding.ok() || is_first || !deterministic) return finding;
  return {v1::VERDICT_UNSTABLE, "gave other bits than the first"};
}

}  // namespace attune::verify
