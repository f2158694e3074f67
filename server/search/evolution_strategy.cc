#include "server/search/evolution_strategy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "server/search/beginning.h"

namespace attune::search {
namespace {

constexpr size_t kParents = 8;
constexpr size_t kGeneration = 16;  // children that are tried
constexpr size_t kScreened = 10;    // children looked at for each that is tried
constexpr size_t kMostDraws = 64;   // for each child looked at, before anything will do
constexpr double kMutation = 0.5;   // share of children that are one parent, changed

}  // namespace

EvolutionStrategy::EvolutionStrategy(Field field, uint64_t seed)
    : LearningStrategy(field), field_(std::move(field)), seed_(seed), exchange_(field_), model_(field_, seed) {}

std::optional<size_t> EvolutionStrategy::Child(const std::vector<size_t>& parents, RandomNumbers& random) const {
  const size_t parent = parents[random.Below(parents.size())];
  if (random.Uniform() < kMutation) {
    const std::vector<size_t> neighbours = exchange_.Neighbours(parent);
    if (neighbours.empty()) return std::nullopt;
    return neighbours[random.Below(neighbours.size())];
  }
  const size_t other = parents[random.Below(parents.size())];
  if (exchange_.FamilyOf(other) != exchange_.FamilyOf(parent)) return std::nullopt;
  std::vector<int64_t> values = field_.points[parent].values;
  for (size_t i = 0; i < values.size(); ++i) {
    if (random.Uniform() < 0.5) values[i] = field_.points[other].values[i];
  }
  return exchange_.Find(parent, values);
}

std::vector<size_t> EvolutionStrategy::Children(const std::vector<size_t>& parents, const std::vector<bool>& open,
                                                RandomNumbers& random) const {
  std::set<size_t> seen;
  std::vector<size_t> children;
  const size_t wanted = kGeneration * kScreened;
  for (size_t draw = 0; draw < wanted * kMostDraws && children.size() < wanted; ++draw) {
    const std::optional<size_t> child = Child(parents, random);
    if (child.has_value() && open[*child] && seen.insert(*child).second) children.push_back(*child);
  }
  for (size_t i = 0; i < open.size() && children.size() < kGeneration; ++i) {
    if (open[i] && seen.insert(i).second) children.push_back(i);
  }
  return children;
}

LearningStrategy::Plan EvolutionStrategy::MakePlan(const Situation& situation) const {
  RandomNumbers random(seed_ * 1000003 + situation.round);
  Plan plan;
  std::vector<Told> good;
  for (const Told& one : situation.told) {
    if (one.second.ok) good.push_back(one);
  }
  if (situation.round == 0 || good.empty()) {
    plan.batch = BeginWith(field_, exchange_, model_, situation.open, kGeneration, random);
    if (!plan.batch.empty() || good.empty()) return plan;
  }
  std::stable_sort(good.begin(), good.end(), [](const Told& a, const Told& b) { return a.second.us < b.second.us; });
  std::vector<size_t> parents;
  for (size_t i = 0; i < std::min(good.size(), kParents); ++i) parents.push_back(good[i].first);
  std::vector<size_t> children = Children(parents, situation.open, random);
  const std::vector<Expectation> expected = model_.Expect(situation.told, seed_ + situation.round);
  const auto cost = [&](size_t child) { return expected[child].mean - std::log(expected[child].ok); };
  std::stable_sort(children.begin(), children.end(), [&](size_t a, size_t b) { return cost(a) < cost(b); });
  for (size_t i = 0; i < children.size(); ++i) {
    (i < kGeneration ? plan.batch : plan.ahead).push_back(children[i]);
  }
  plan.ahead.resize(std::min(plan.ahead.size(), kGeneration));
  return plan;
}

}  // namespace attune::search
