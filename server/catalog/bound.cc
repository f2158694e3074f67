#include "server/catalog/bound.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace attune::catalog {
namespace {

// From here on a unit is what bounds; below the second, none is.
constexpr double kSaturated = 0.8;
constexpr double kBusy = 0.6;
// Below this share of the time the SMs have too little to do.
constexpr double kFewSms = 0.5;
// What comes from DRAM goes through L2: where DRAM is nearly as busy, it is what bounds.
constexpr double kAsBusy = 0.95;

constexpr std::pair<absl::string_view, absl::string_view> kUnits[] = {{"dram_throughput", "DRAM"},
                                                                      {"l2_throughput", "L2"},
                                                                      {"shared_memory", "shared memory"},
                                                                      {"tensor_pipe", "the tensor pipe"},
                                                                      {"tensor_and_fp64_pipe", "the tensor pipe"},
                                                                      {"issue_slots", "issue slots"},
                                                                      {"exponentials", "exponentials"}};

constexpr std::pair<absl::string_view, absl::string_view> kMeanings[] = {
    {"barrier", "waiting for other warps at a barrier"},
    {"gmma", "waiting for wgmma"},
    {"lg_throttle", "the queue of global-memory instructions is full"},
    {"long_scoreboard", "waiting for global memory or L2"},
    {"math_pipe_throttle", "the tensor or an arithmetic pipe is taken"},
    {"mio_throttle", "the queue of shared-memory instructions is full"},
    {"no_instruction", "instruction fetch"},
    {"not_selected", "another warp was issued: enough are ready"},
    {"short_scoreboard", "waiting for shared memory or exponentials"},
    {"wait", "fixed latencies between dependent instructions"}};

std::optional<double> Find(const v1::KernelProfile& kernel, absl::string_view name) {
  for (const v1::Counter& counter : kernel.counters()) {
    if (counter.name() == name) return counter.value();
  }
  return std::nullopt;
}

// "; warps mostly stall on barrier (25 %: waiting for other warps at a barrier)"
std::string LargestStall(const v1::KernelProfile& kernel) {
  if (kernel.stalls().empty()) return "";
  const v1::Stall& stall = kernel.stalls(0);
  const auto* const meaning = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                           [&](const auto& known) { return known.first == stall.reason(); });
  return absl::StrFormat("; warps mostly stall on %s (%.0f %%%s)", stall.reason(), stall.share() * 100,
                         meaning == std::end(kMeanings) ? "" : absl::StrCat(": ", meaning->second));
}

std::string Conflicts(const v1::KernelProfile& kernel) {
  const std::optional<double> conflicts = Find(kernel, "bank_conflicts"), all = Find(kernel, "shared_wavefronts");
  if (!conflicts.has_value() || !all.has_value() || *all <= 0 || *conflicts < 0.2 * *all) return "";
  return absl::StrFormat("; %.0f %% of its shared-memory wavefronts are bank conflicts",
                         std::min(*conflicts / *all, 1.0) * 100);
}

std::string BoundOfKernel(const v1::KernelProfile& kernel) {
  absl::string_view top;
  double share = 0;
  for (const auto& [counter, unit] : kUnits) {
    const double value = Find(kernel, counter).value_or(0);
    if (value <= share) continue;
    top = unit;
    share = value;
  }
  if (const double dram = Find(kernel, "dram_throughput").value_or(0); top == "L2" && dram >= kAsBusy * share) {
    top = "DRAM";
    share = dram;
  }
  const std::string why = absl::StrCat(LargestStall(kernel), Conflicts(kernel));
  const std::optional<double> busy = Find(kernel, "sms_busy");
  if (busy.has_value() && *busy < kFewSms) {
    return absl::StrFormat("too few CTAs: the SMs are busy %.0f %% of the time%s", *busy * 100, why);
  }
  if (top.empty()) return absl::StrCat("no unit's throughput is known", why);
  if (share >= kSaturated) return absl::StrFormat("%s, at %.0f %% of its peak", top, share * 100);
  if (share >= kBusy) return absl::StrFormat("mostly %s, at %.0f %% of its peak%s", top, share * 100, why);
  return absl::StrFormat("latency: nothing is above %.0f %% of its peak (%s)%s", share * 100, top, why);
}

}  // namespace

std::string BoundOf(const v1::Profile& profile) {
  if (profile.kernels().empty()) return "";
  const auto longest = std::max_element(
      profile.kernels().begin(), profile.kernels().end(), [](const v1::KernelProfile& a, const v1::KernelProfile& b) {
        return Find(a, "duration_us").value_or(0) < Find(b, "duration_us").value_or(0);
      });
  const std::string bound = BoundOfKernel(*longest);
  return profile.kernels_size() == 1 ? bound : absl::StrCat(longest->entry(), ": ", bound);
}

}  // namespace attune::catalog
