#include "client/replay/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/replay/replay.h"
#include "server/search/guided_strategy.h"

namespace attune::replay {
namespace {

// Of the best of those that a run tried.
bool IsRight(const std::vector<size_t>& tried, double within, const RecordedSpace& space) {
  return TrialsToWithin(within, tried, space).has_value();
}

void Add(const RecordedSpace& space, uint64_t seed, double limit, Calibration& calibration) {
  const auto most = static_cast<size_t>(std::ceil(limit * static_cast<double>(space.outcomes.size())));
  search::GuidedStrategy strategy(space.field,
                                  {.seed = seed, .limit = static_cast<int64_t>(most), .enough = calibration.stated});
  const std::vector<size_t> tried = Replay(strategy, space, most);
  ++calibration.runs;
  const auto claim = strategy.Claim();
  if (!strategy.Done() || !claim.has_value() || tried.size() == space.outcomes.size()) return;
  ++calibration.sure;
  calibration.tried += static_cast<double>(tried.size()) / static_cast<double>(space.outcomes.size());
  if (IsRight(tried, claim->within(), space)) ++calibration.right;
}

}  // namespace

absl::StatusOr<std::vector<Calibration>> Calibrate(const std::vector<RecordedSpace>& spaces, int seeds, double limit) {
  std::vector<Calibration> calibrations;
  for (double stated : {0.8, 0.95, 0.995}) {
    Calibration calibration;
    calibration.stated = stated;
    for (const RecordedSpace& space : spaces) {
      for (int seed = 1; seed <= seeds; ++seed) Add(space, static_cast<uint64_t>(seed), limit, calibration);
    }
    calibration.tried /= static_cast<double>(std::max<size_t>(calibration.sure, 1));
    calibrations.push_back(calibration);
  }
  return calibrations;
}

std::string Markdown(const std::vector<Calibration>& calibrations) {
  std::string text = "| says | runs | ended sure | of these right | space tried by these |\n|---|---|---|---|---|\n";
  for (const Calibration& one : calibrations) {
    absl::StrAppendFormat(&text, "| %.4g %% | %d | %d | %.1f %% | %.1f %% |\n", one.stated * 100, one.runs, one.sure,
                          100.0 * static_cast<double>(one.right) / static_cast<double>(std::max<size_t>(one.sure, 1)),
                          100 * one.tried);
  }
  return text;
}

}  // namespace attune::replay
