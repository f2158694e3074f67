#include "server/search/guided_strategy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "server/search/beginning.h"
#include "server/search/confidence.h"

namespace attune::search {
namespace {

constexpr size_t kBatch = 8;           // trials planned at once where code is compiled for them
constexpr size_t kMostCodes = 16;      // of trials planned and not told, while code is compiled
constexpr size_t kSureFor = 8;         // trials in a row after which it is sure enough, before it ends
constexpr size_t kExploreEvery = 4;    // plans: one trial of any candidate, where there is room for it
constexpr size_t kPolished = 3;        // whose neighbours are tried near the end
constexpr double kPolishShare = 0.25;  // of the limit

// Of a normal variable's fall below `best`, times the probability that the trial is good.
double Improvement(const Expectation& expected, double best) {
  const double z = (best - expected.mean) / expected.deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * 3.14159265358979323846);
  const double below = std::erfc(-z / std::sqrt(2.0)) / 2;
  return expected.ok * expected.deviation * (z * below + density);
}

double BestOf(const std::vector<Told>& told) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [candidate, outcome] : told) {
    if (outcome.ok) best = std::min(best, outcome.us);
  }
  return best;
}

std::vector<bool> UntoldOf(size_t candidates, const std::vector<Told>& told) {
  std::vector<bool> untold(candidates, true);
  for (const auto& [candidate, outcome] : told) untold[candidate] = false;
  return untold;
}

// The next trials, from what the model expects.
class BatchPlanner {
 public:
  BatchPlanner(const Exchange& exchange, const std::vector<Told>& told, const std::vector<bool>& open,
               const std::vector<Expectation>& expected, size_t most)
      : exchange_(exchange), open_(open), expected_(expected), most_(most) {
    for (const Told& one : told) {
      if (one.second.ok) good_.push_back(one);
    }
    std::stable_sort(good_.begin(), good_.end(),
                     [](const Told& a, const Told& b) { return a.second.us < b.second.us; });
    const double best = std::log(good_.front().second.us);
    for (size_t candidate = 0; candidate < open.size(); ++candidate) {
      if (open[candidate]) ranked_.emplace_back(Improvement(expected[candidate], best), candidate);
    }
    // Among equals the first: the order does not depend on how sorting works.
    std::sort(ranked_.begin(), ranked_.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
  }

  bool IsFull() const { return batch_.size() >= most_; }
  void Take(std::optional<size_t> candidate) {
    if (candidate.has_value() && !IsFull() && taken_.insert(*candidate).second) batch_.push_back(*candidate);
  }
  // Most improvement is expected of it.
  std::optional<size_t> MostPromising() const {
    for (const auto& [improvement, candidate] : ranked_) {
      if (!taken_.contains(candidate)) return candidate;
    }
    return std::nullopt;
  }
  // The fastest, as expected, a step from the best few.
  std::optional<size_t> BestNeighbour(size_t of) const {
    std::optional<size_t> best;
    double least = 0;
    for (size_t i = 0; i < std::min(of, good_.size()); ++i) {
      for (size_t candidate : exchange_.Neighbours(good_[i].first)) {
        if (!open_[candidate] || taken_.contains(candidate)) continue;
        const double cost = CostOf(candidate, 0);
        if (best.has_value() && cost >= least) continue;
        best = candidate;
        least = cost;
      }
    }
    return best;
  }
  // The fastest, if the times were what is drawn here from what is expected. Draws differ, so that several of one model
  // do not all ask the same of it (Thompson sampling; Kandasamy et al., AISTATS 2018, for batches).
  std::optional<size_t> FastestAsDrawn(RandomNumbers& random) const {
    std::optional<size_t> best;
    double least = 0;
    for (const auto& [improvement, candidate] : ranked_) {
      if (taken_.contains(candidate)) continue;
      const double cost = CostOf(candidate, random.Normal());
      if (best.has_value() && cost >= least) continue;
      best = candidate;
      least = cost;
    }
    return best;
  }
  std::optional<size_t> Any(RandomNumbers& random) const {
    if (ranked_.empty()) return std::nullopt;
    return ranked_[random.Below(ranked_.size())].second;
  }
  const std::vector<size_t>& batch() const { return batch_; }

 private:
  // ln(us), so many deviations from what is expected, and more for what may fail.
  double CostOf(size_t candidate, double deviations) const {
    const Expectation& expected = expected_[candidate];
    return expected.mean + deviations * expected.deviation - std::log(expected.ok);
  }

  const Exchange& exchange_;
  const std::vector<bool>& open_;
  const std::vector<Expectation>& expected_;
  const size_t most_;
  std::vector<Told> good_;                         // fastest first
  std::vector<std::pair<double, size_t>> ranked_;  // those open, by improvement
  std::vector<size_t> batch_;
  std::set<size_t> taken_;
};

}  // namespace

GuidedStrategy::GuidedStrategy(Field field, const Options& options)
    : LearningStrategy(field),
      field_(std::move(field)),
      options_(options),
      exchange_(field_),
      model_(field_, options.seed) {}

size_t GuidedStrategy::Total() const {
  if (options_.limit == 0) return field_.candidates;
  const int64_t left = std::max<int64_t>(options_.limit - field_.spent, 0);
  return std::min(field_.candidates, Known().size() + static_cast<size_t>(left));
}

size_t GuidedStrategy::MostCodes() const {
  return field_.compilers == 0 ? kMostCodes : std::min(kMostCodes, field_.compilers + 1);
}

bool GuidedStrategy::PlansMore(const Situation& situation) const {
  return IsCompiling(situation) ? situation.new_codes < MostCodes() : situation.pending < field_.cards;
}

bool GuidedStrategy::IsCompiling(const Situation& situation) {
  return situation.since_compiled.has_value() && *situation.since_compiled < kBatch;
}

LearningStrategy::Plan GuidedStrategy::MakePlan(const Situation& situation) const {
  RandomNumbers random(options_.seed * 1000003 + situation.round);
  const auto tried = static_cast<int64_t>(situation.told.size() - situation.known + situation.pending) + field_.spent;
  const bool ended = options_.limit > 0 && tried >= options_.limit;
  Plan plan;
  const bool any_good =
      std::any_of(situation.told.begin(), situation.told.end(), [](const Told& one) { return one.second.ok; });
  if (!ended && situation.pending == 0 && (situation.round == 0 || !any_good)) {
    const size_t most = TrialsToBeginWith(field_, model_);
    plan.batch = BeginWith(field_, exchange_, model_, situation.open, most, random);
    if (!plan.batch.empty()) return plan;
  }
  if (!any_good) return plan;
  const std::vector<Expectation> expected = model_.Expect(situation.told, options_.seed + situation.round);
  plan.confidence = ConfidenceThatBest(BestOf(situation.told), UntoldOf(field_.candidates, situation.told), expected);
  const auto enough = [this](double confidence) { return options_.enough > 0 && confidence >= options_.enough; };
  const size_t told = situation.told.size();
  if (enough(*plan.confidence)) plan.sure_since = situation.sure_since.value_or(told);
  const bool sure = plan.sure_since.has_value() && told - *plan.sure_since >= kSureFor;
  if (ended || sure) return plan;
  const size_t left = options_.limit > 0 ? static_cast<size_t>(options_.limit - tried) : kMostCodes;
  // One after the other, each from all before it; several only to keep compilers busy.
  const size_t several = situation.pending > 0 ? MostCodes() - situation.new_codes : std::min(kBatch, MostCodes());
  const size_t most = IsCompiling(situation) ? several : 1;
  BatchPlanner planner(exchange_, situation.told, situation.open, expected, std::min(most, left));
  const bool ends_soon = options_.limit > 0 && static_cast<double>(options_.limit - tried) <=
                                                   kPolishShare * static_cast<double>(options_.limit);
  const bool polish = ends_soon || enough(*plan.confidence);
  planner.Take(planner.MostPromising());
  planner.Take(planner.BestNeighbour(polish ? kPolished : 1));
  if (polish) planner.Take(planner.BestNeighbour(kPolished));
  if (situation.round % kExploreEvery == 0) planner.Take(planner.Any(random));
  while (!planner.IsFull()) {
    const std::optional<size_t> next = planner.FastestAsDrawn(random);
    if (!next.has_value()) break;
    planner.Take(next);
  }
  plan.batch = planner.batch();
  return plan;
}

}  // namespace attune::search
