#include "client/cli/search_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/arguments.h"

namespace attune::cli {
namespace {

constexpr std::array<std::pair<absl::string_view, v1::Strategy::Kind>, 4> kStrategies = {
    {{"exhaustive", v1::Strategy::KIND_EXHAUSTIVE},
     {"random", v1::Strategy::KIND_RANDOM},
     {"guided", v1::Strategy::KIND_GUIDED},
     {"evolution", v1::Strategy::KIND_EVOLUTION}}};
constexpr std::array<std::pair<absl::string_view, v1::Strategy::Effort>, 4> kEfforts = {
    {{"quick", v1::Strategy::EFFORT_QUICK},
     {"standard", v1::Strategy::EFFORT_STANDARD},
     {"full", v1::Strategy::EFFORT_FULL},
     {"exhaustive", v1::Strategy::EFFORT_EXHAUSTIVE}}};

// Of a word that the command line has checked.
template <typename Words>
auto Named(const Words& words, absl::string_view word) {
  return std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.first == word; })->second;
}

}  // namespace

void AddSearchOptions(CLI::App& app, const std::string& otherwise, SearchOptions* options) {
  app.add_option("--strategy", options->strategy,
                 absl::StrCat("Which variants are tried, in which order: guided (by a model of what was tried) and "
                              "evolution try a small part of them (see --effort), exhaustive all. ",
                              otherwise))
      ->check(OneOf({"exhaustive", "random", "guided", "evolution"}));
  app.add_option("--effort", options->effort,
                 "Of guided and evolution: at most 24 trials (quick), a twentieth of the variants but 96 where that is "
                 "more (standard, the default), a quarter or 96 (full), or all (exhaustive). Alone it means guided, or "
                 "the strategy exhaustive")
      ->check(OneOf({"quick", "standard", "full", "exhaustive"}));
}

absl::StatusOr<v1::Strategy::Kind> KindOf(const SearchOptions& options) {
  if (options.strategy.empty()) {
    if (options.effort.empty()) return v1::Strategy::KIND_UNSPECIFIED;
    return options.effort == "exhaustive" ? v1::Strategy::KIND_EXHAUSTIVE : v1::Strategy::KIND_GUIDED;
  }
  if (!options.effort.empty() && (options.strategy == "exhaustive" || options.strategy == "random")) {
    return absl::InvalidArgumentError(absl::StrCat("--effort is ", options.effort, ", with --strategy ",
                                                   options.strategy, "; allowed: with guided and evolution"));
  }
  return Named(kStrategies, options.strategy);
}

v1::Strategy::Effort EffortOf(const SearchOptions& options) {
  return options.effort.empty() ? v1::Strategy::EFFORT_UNSPECIFIED : Named(kEfforts, options.effort);
}

}  // namespace attune::cli
