// A few variants for many problems: which of them to keep, when code for each problem of its own is too much.
#ifndef ATTUNE_CLIENT_CLI_PORTFOLIO_H_
#define ATTUNE_CLIENT_CLI_PORTFOLIO_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/attune/problem.h"

namespace attune::cli {

// What is known of `problems.size()` problems and `variants.size()` candidates.
struct PortfolioTimes {
  static constexpr double kUnknown = 0;

  std::vector<Problem> problems;
  std::vector<double> weights;          // of each problem, above 0
  std::vector<double> best_us;          // of each problem, over all variants ever timed
  std::vector<std::string> variants;    // texts
  std::vector<std::vector<double>> us;  // [problem][variant]; kUnknown: not timed, or not right there
};

// By a variant's text, the time in us of each that was right for one problem.
using VariantTimes = std::map<std::string, double>;

// What a portfolio is chosen among unless asked otherwise: so many of each problem's fastest variants.
inline constexpr size_t kCandidates = 6;

// Texts of the `most` fastest variants of each problem, of all of them.
std::vector<std::string> CandidatesOf(const std::vector<VariantTimes>& times, size_t most);

// `weights` and `times` are the problems', in their order; the variants are `candidates`.
PortfolioTimes TimesOfCandidates(std::vector<Problem> problems, std::vector<double> weights,
                                 const std::vector<VariantTimes>& times, std::vector<std::string> candidates);

struct Portfolio {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::vector<size_t> variants;    // in the order in which each lowers the loss most
  std::vector<size_t> of_problem;  // the fastest of them for each problem; kNone: none was timed there
  std::vector<double>
      mean_loss;  // after each of `variants`: weighted mean over the problems that it covers, 0.02 for 2 %
  std::vector<double> worst_loss;  // likewise, the largest
};

// At most `most` variants that come nearest to each problem's best: least sum of weight * log(us / best_us), problems
// that none covers first of all. Greedy, then single exchanges as long as one helps (as k-medoids does: Kaufman,
// Rousseeuw, "Finding Groups in Data", 1990, chapter 2).
Portfolio ChoosePortfolio(const PortfolioTimes& times, size_t most);

// A run of neighbouring lengths that one variant is for.
struct DispatchRange {
  int64_t first = 1;
  int64_t last = 0;  // 0: without end
  size_t variant = 0;
};
struct DispatchTable {
  std::string axis;  // "q", "kv", "q and kv", or "batch"; empty: the problems differ in more than one
  std::vector<DispatchRange> ranges;
};
// Of problems that differ in one length alone. A length between two of them belongs to the one that it has the smaller
// ratio to.
DispatchTable DispatchByLength(const PortfolioTimes& times, const Portfolio& portfolio);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_PORTFOLIO_H_
