#include "client/cli/portfolio.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace attune::cli {
namespace {

// Problems without code are worse than any time: first their weight counts, then the others' loss.
struct Cost {
  double uncovered = 0;
  double loss = 0;

  bool operator<(const Cost& other) const {
    if (uncovered != other.uncovered) return uncovered < other.uncovered;
    return loss < other.loss - 1e-12;
  }
};

// The fastest of `chosen` for a problem; Portfolio::kNone where none was timed.
size_t FastestOf(const PortfolioTimes& times, size_t problem, const std::vector<size_t>& chosen) {
  size_t fastest = Portfolio::kNone;
  for (size_t variant : chosen) {
    const double us = times.us[problem][variant];
    if (us <= PortfolioTimes::kUnknown) continue;
    if (fastest == Portfolio::kNone || us < times.us[problem][fastest]) fastest = variant;
  }
  return fastest;
}

double LossOf(const PortfolioTimes& times, size_t problem, size_t variant) {
  return times.us[problem][variant] / times.best_us[problem];
}

Cost CostOf(const PortfolioTimes& times, const std::vector<size_t>& chosen) {
  Cost cost;
  for (size_t problem = 0; problem < times.problems.size(); ++problem) {
    const size_t fastest = FastestOf(times, problem, chosen);
    if (fastest == Portfolio::kNone) {
      cost.uncovered += times.weights[problem];
    } else {
      cost.loss += times.weights[problem] * std::log(LossOf(times, problem, fastest));
    }
  }
  return cost;
}

// The candidate that lowers the cost most when it is added; nothing where none does.
std::optional<size_t> NextOf(const PortfolioTimes& times, const std::vector<size_t>& chosen) {
  Cost least = CostOf(times, chosen);
  std::optional<size_t> next;
  for (size_t variant = 0; variant < times.variants.size(); ++variant) {
    std::vector<size_t> more = chosen;
    more.push_back(variant);
    const Cost cost = CostOf(times, more);
    if (!(cost < least)) continue;
    least = cost;
    next = variant;
  }
  return next;
}

void Exchange(const PortfolioTimes& times, std::vector<size_t>& chosen) {
  for (bool helped = true; helped;) {
    helped = false;
    for (size_t& member : chosen) {
      for (size_t variant = 0; variant < times.variants.size(); ++variant) {
        if (std::find(chosen.begin(), chosen.end(), variant) != chosen.end()) continue;
        const Cost before = CostOf(times, chosen);
        const size_t old = std::exchange(member, variant);
        if (CostOf(times, chosen) < before) {
          helped = true;
        } else {
          member = old;
        }
      }
    }
  }
}

// As an exchange leaves them, in the order in which each helps most.
std::vector<size_t> InOrder(const PortfolioTimes& times, std::vector<size_t> left) {
  std::vector<size_t> ordered;
  while (!left.empty()) {
    const auto cost_with = [&](size_t variant) {
      std::vector<size_t> more = ordered;
      more.push_back(variant);
      return CostOf(times, more);
    };
    const auto next =
        std::min_element(left.begin(), left.end(), [&](size_t a, size_t b) { return cost_with(a) < cost_with(b); });
    ordered.push_back(*next);
    left.erase(next);
  }
  return ordered;
}

void AddLosses(const PortfolioTimes& times, Portfolio& portfolio) {
  for (size_t count = 1; count <= portfolio.variants.size(); ++count) {
    const std::vector<size_t> some(portfolio.variants.begin(),
                                   portfolio.variants.begin() + static_cast<std::ptrdiff_t>(count));
    double sum = 0;
    double weight = 0;
    double worst = 0;
    for (size_t problem = 0; problem < times.problems.size(); ++problem) {
      const size_t fastest = FastestOf(times, problem, some);
      if (fastest == Portfolio::kNone) continue;
      const double loss = LossOf(times, problem, fastest) - 1;
      sum += times.weights[problem] * loss;
      weight += times.weights[problem];
      worst = std::max(worst, loss);
    }
    portfolio.mean_loss.push_back(weight > 0 ? sum / weight : 0);
    portfolio.worst_loss.push_back(worst);
  }
}

// A length that problems may differ in.
struct Axis {
  const char* name;
  int64_t (*length)(const Problem&);
  void (*set)(Problem&, int64_t);
};
constexpr Axis kAxes[] = {
    {"kv", [](const Problem& p) { return p.seq_kv; }, [](Problem& p, int64_t n) { p.seq_kv = n; }},
    {"q", [](const Problem& p) { return p.seq_q; }, [](Problem& p, int64_t n) { p.seq_q = n; }},
    {"q and kv", [](const Problem& p) { return p.seq_q == p.seq_kv ? p.seq_q : 0; },
     [](Problem& p, int64_t n) { p.seq_q = p.seq_kv = n; }},
    {"batch", [](const Problem& p) { return p.batch; }, [](Problem& p, int64_t n) { p.batch = n; }},
};

// Whether the axis is all that they differ in, and each has its own length.
bool DifferIn(const Axis& axis, const std::vector<Problem>& problems) {
  std::vector<int64_t> lengths;
  for (const Problem& problem : problems) {
    Problem same = problem;
    axis.set(same, axis.length(problems.front()));
    if (axis.length(problem) == 0 || !(same == problems.front())) return false;
    lengths.push_back(axis.length(problem));
  }
  std::sort(lengths.begin(), lengths.end());
  return std::adjacent_find(lengths.begin(), lengths.end()) == lengths.end();
}

}  // namespace

std::vector<std::string> CandidatesOf(const std::vector<VariantTimes>& times, size_t most) {
  std::set<std::string> candidates;
  for (const VariantTimes& of_problem : times) {
    std::vector<std::pair<double, std::string>> ranked;
    for (const auto& [variant, us] : of_problem) ranked.emplace_back(us, variant);
    std::sort(ranked.begin(), ranked.end());
    for (size_t i = 0; i < std::min(most, ranked.size()); ++i) candidates.insert(ranked[i].second);
  }
  return {candidates.begin(), candidates.end()};
}

PortfolioTimes TimesOfCandidates(std::vector<Problem> problems, std::vector<double> weights,
                                 const std::vector<VariantTimes>& times, std::vector<std::string> candidates) {
  PortfolioTimes gathered;
  gathered.problems = std::move(problems);
  gathered.weights = std::move(weights);
  gathered.variants = std::move(candidates);
  for (const VariantTimes& of_problem : times) {
    double best = PortfolioTimes::kUnknown;
    for (const auto& [variant, us] : of_problem) best = best <= 0 ? us : std::min(best, us);
    gathered.best_us.push_back(best);
    std::vector<double>& row = gathered.us.emplace_back();
    for (const std::string& variant : gathered.variants) {
      const auto found = of_problem.find(variant);
      row.push_back(found == of_problem.end() ? PortfolioTimes::kUnknown : found->second);
    }
  }
  return gathered;
}

Portfolio ChoosePortfolio(const PortfolioTimes& times, size_t most) {
  std::vector<size_t> chosen;
  while (chosen.size() < most) {
    const std::optional<size_t> next = NextOf(times, chosen);
    if (!next.has_value()) break;
    chosen.push_back(*next);
  }
  Exchange(times, chosen);
  Portfolio portfolio;
  portfolio.variants = InOrder(times, std::move(chosen));
  for (size_t problem = 0; problem < times.problems.size(); ++problem) {
    portfolio.of_problem.push_back(FastestOf(times, problem, portfolio.variants));
  }
  AddLosses(times, portfolio);
  return portfolio;
}

DispatchTable DispatchByLength(const PortfolioTimes& times, const Portfolio& portfolio) {
  DispatchTable table;
  if (times.problems.size() < 2) return table;
  const auto* const axis =
      std::find_if(std::begin(kAxes), std::end(kAxes), [&](const Axis& one) { return DifferIn(one, times.problems); });
  if (axis == std::end(kAxes)) return table;
  table.axis = axis->name;
  std::vector<size_t> order(times.problems.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto length = [&](size_t problem) { return axis->length(times.problems[problem]); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return length(a) < length(b); });
  int64_t first = 1;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_last = i + 1 == order.size();
    const double middle =
        is_last ? 0 : std::sqrt(static_cast<double>(length(order[i])) * static_cast<double>(length(order[i + 1])));
    const int64_t last = is_last ? 0 : static_cast<int64_t>(middle);
    const size_t variant = portfolio.of_problem[order[i]];
    if (variant == Portfolio::kNone) {
      // A gap: nothing was timed there.
    } else if (!table.ranges.empty() && table.ranges.back().variant == variant &&
               table.ranges.back().last + 1 == first) {
      table.ranges.back().last = last;
    } else {
      table.ranges.push_back({first, last, variant});
    }
    first = last + 1;
  }
  return table;
}

}  // namespace attune::cli
