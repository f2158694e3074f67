#include "client/replay/advice.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/replay/recorded_space.h"
#include "proto/attune/problem.h"
#include "server/catalog/explain.h"
#include "server/catalog/moves.h"
#include "server/space/space.h"

namespace attune::replay {
namespace {

// "raise KV_SPLITS from 1 to 8, which has not been tried".
struct Advised {
  std::string change;  // "raise KV_SPLITS"
  std::string parameter;
  int64_t value = 0;
};

std::optional<Advised> AdvisedBy(absl::string_view advice) {
  const std::vector<std::string> words = absl::StrSplit(advice, absl::ByAnyChar(" ,"));
  if (words.size() < 6 || (words[0] != "raise" && words[0] != "lower") || words[2] != "from" || words[4] != "to") {
    return std::nullopt;
  }
  Advised advised = {absl::StrCat(words[0], " ", words[1]), words[1], 0};
  if (!absl::SimpleAtoi(words[5], &advised.value)) return std::nullopt;
  return advised;
}

// One recording with the families that its rows are of.
class Space {
 public:
  static absl::StatusOr<Space> Of(const v1::Recording& recording, const Families& families,
                                  const attune::v1::Device& device) {
    absl::StatusOr<Problem> problem = ParseProblem(recording.problem());
    if (!problem.ok()) return problem.status();
    Space made(recording, *problem, device);
    absl::StatusOr<Families> recorded = FamiliesOf(recording, families);
    if (!recorded.ok()) return recorded.status();
    made.families_ = *std::move(recorded);
    for (const v1::Row& row : recording.rows()) made.by_text_[made.VariantOf(row).ToText()] = &row;
    return made;
  }

  // The advice of a row, by itself; nullopt without one that names a parameter.
  std::optional<Advised> Explained(const v1::Row& row) const {
    const space::Variant variant = VariantOf(row);
    attune::v1::Trial trial;
    *trial.mutable_problem() = ToProto(problem_);
    *trial.mutable_variant() = variant.ToProto();
    trial.set_verdict(attune::v1::VERDICT_OK);
    trial.mutable_timing()->set_median_us(row.median_us());
    trial.mutable_timing()->set_low_us(row.low_us());
    trial.mutable_timing()->set_high_us(row.high_us());
    trial.mutable_resources()->set_registers(row.registers());
    trial.mutable_resources()->set_spill_bytes(row.spill_bytes());
    trial.mutable_resources()->set_shared_bytes(row.shared_bytes());
    absl::StatusOr<attune::v1::LaunchRecipe> recipe = space::RecipeFor(variant, problem_, device_);
    if (!recipe.ok()) return std::nullopt;
    *trial.mutable_recipe() = *std::move(recipe);
    *trial.mutable_geometry() = space::GeometryOf(trial.recipe(), trial.resources(), device_);
    const catalog::Moves moves(trial, variant.family, device_, {});
    const attune::v1::ExplainResponse explained = catalog::Explain(trial, device_, /*floor_us=*/0, moves);
    for (const auto& finding : explained.findings()) {
      if (std::optional<Advised> advised = AdvisedBy(finding.advice()); advised.has_value()) return advised;
    }
    return std::nullopt;
  }

  // Null where it was not recorded.
  const v1::Row* Neighbour(const v1::Row& row, const Advised& advised) const {
    space::Variant variant = VariantOf(row);
    const auto& parameters = variant.family->manifest.parameters();
    for (int i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name() == advised.parameter) variant.values[static_cast<size_t>(i)] = advised.value;
    }
    const auto found = by_text_.find(variant.ToText());
    return found == by_text_.end() ? nullptr : found->second;
  }

 private:
  Space(const v1::Recording& recording, const Problem& problem, const attune::v1::Device& device)
      : problem_(problem), device_(device) {}

  space::Variant VariantOf(const v1::Row& row) const {
    return {.family = families_[static_cast<size_t>(row.family())],
            .values = {row.values().begin(), row.values().end()}};
  }

  Problem problem_;
  attune::v1::Device device_;
  Families families_;
  std::map<std::string, const v1::Row*> by_text_;  // into the recording
};

}  // namespace

absl::StatusOr<AdviceTally> TryAdvice(const std::vector<v1::Recording>& recordings, const Families& families,
                                      const attune::v1::Device& device, size_t trials, uint64_t seed) {
  std::vector<Space> spaces;
  std::vector<std::pair<size_t, const v1::Row*>> timed;
  for (const v1::Recording& recording : recordings) {
    absl::StatusOr<Space> space = Space::Of(recording, families, device);
    if (!space.ok()) return space.status();
    spaces.push_back(*std::move(space));
    for (const v1::Row& row : recording.rows()) {
      if (HasTime(row)) timed.emplace_back(spaces.size() - 1, &row);
    }
  }
  std::mt19937_64 random(seed);
  std::shuffle(timed.begin(), timed.end(), random);
  timed.resize(std::min(timed.size(), trials));
  AdviceTally tally;
  for (const auto& [space, row] : timed) {
    ++tally.trials;
    const std::optional<Advised> advised = spaces[space].Explained(*row);
    if (!advised.has_value()) {
      ++tally.silent;
      continue;
    }
    const v1::Row* const neighbour = spaces[space].Neighbour(*row, *advised);
    AdviceTally::OfChange& change = tally.by_change[advised->change];
    if (neighbour == nullptr || !HasTime(*neighbour)) {
      ++tally.unrecorded;
      ++change.unrecorded;
      continue;
    }
    const bool faster = neighbour->median_us() < row->median_us();
    ++(faster ? tally.faster : tally.slower);
    ++(faster ? change.faster : change.slower);
  }
  return tally;
}

std::string Markdown(const AdviceTally& tally) {
  const size_t known = tally.faster + tally.slower;
  std::string text = absl::StrFormat(
      "%d trials: %d without advice, %d advised towards a variant that was not recorded or failed; of %d others %d are "
      "faster (%.0f %%).\n\n| change | faster | not | not recorded or failed |\n|---|---|---|---|\n",
      tally.trials, tally.silent, tally.unrecorded, known, tally.faster,
      known == 0 ? 0.0 : 100.0 * static_cast<double>(tally.faster) / static_cast<double>(known));
  for (const auto& [change, of] : tally.by_change) {
    absl::StrAppendFormat(&text, "| %s | %d | %d | %d |\n", change, of.faster, of.slower, of.unrecorded);
  }
  return text;
}

}  // namespace attune::replay
