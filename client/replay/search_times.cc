#include "client/replay/search_times.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/clock.h"

namespace attune::replay {

absl::Status NoCompileTimes(const RecordedSpace& space) {
  return absl::InvalidArgumentError(
      absl::StrCat(space.name, ": no compile time was recorded; leave it out, or give --compilers=0"));
}

absl::StatusOr<std::string> TimeSearches(const std::vector<RecordedSpace>& spaces, const TimedOptions& options) {
  std::string text = absl::StrFormat(
      "| problem | variants | trials | codes compiled | s | longest s | within %.3g %% "
      "|\n|---|---|---|---|---|---|---|\n",
      options.within * 100);
  const auto median = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  for (const RecordedSpace& space : spaces) {
    if (options.host.compilers > 0 && space.compile_ms.empty()) {
      return NoCompileTimes(space);
    }
    std::vector<double> trials, codes, seconds;
    int near = 0;
    for (int seed = 1; seed <= options.seeds; ++seed) {
      attune::v1::Strategy description;
      description.set_kind(attune::v1::Strategy::KIND_GUIDED);
      description.set_effort(attune::v1::Strategy::EFFORT_STANDARD);
      description.set_seed(static_cast<uint64_t>(seed));
      const auto strategy = search::MakeStrategy(description, FieldOn(options.host, space), 1, SteadyNow);
      const ReplayRun run = ReplayOn(options.host, *strategy, space);
      trials.push_back(static_cast<double>(run.tried.size()));
      codes.push_back(static_cast<double>(run.codes));
      seconds.push_back(run.seconds);
      near += TrialsToWithin(options.within, run.tried, space).has_value() ? 1 : 0;
    }
    absl::StrAppendFormat(&text, "| %s | %d | %.0f | %.0f | %.1f | %.1f | %d of %d |\n", space.name,
                          space.outcomes.size(), median(trials), median(codes), median(seconds),
                          *std::max_element(seconds.begin(), seconds.end()), near, options.seeds);
  }
  return text;
}

}  // namespace attune::replay
