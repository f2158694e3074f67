// Two selections of times, problem by problem: dates, classes, toolchains, drivers, kernel families.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"
#include "server/base/proto_time.h"
#include "server/catalog/served_timing.h"
#include "server/store/page_token.h"
#include "server/sweep/history_of.h"
#include "server/sweep/sweep_outcome.h"
#include "server/sweep/trend.h"
#include "server/sweep/trends.h"

namespace attune::sweep {
namespace {

using TimesRow = v1::CompareTimesResponse::Row;

// Of one answer.
constexpr size_t kMostProblems = 10'000;

// One side of the comparison.
struct Side {
  std::string device_class = {};             // empty: any
  std::optional<store::Instance> card = {};  // of the class; nullopt: any
  absl::Time end = absl::InfiniteFuture();
  std::string toolchain = {};
  std::string driver = {};
  std::string family = {};
};

absl::StatusOr<Side> SideOf(absl::string_view name, const v1::TimeSelection& selection, const catalog::Host& host) {
  Side side{.toolchain = selection.toolchain(), .driver = selection.driver(), .family = selection.family()};
  if (selection.has_end_time()) side.end = TimeOf(selection.end_time());
  if (!selection.device_id().empty()) {
    const v1::Device* device = catalog::FindDevice(host, selection.device_id());
    if (device == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(name, ".device_id is ", Quoted(selection.device_id()),
                                                     "; this host has: ", catalog::DeviceNames(host)));
    }
    side.device_class = device->fingerprint();
    if (selection.device_id() != device->class_alias()) side.card = catalog::InstanceOf(*device);
  }
  if (!side.family.empty() && (selection.has_end_time() || !side.toolchain.empty() || !side.driver.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".family is ", Quoted(side.family),
                     " beside an end_time, a toolchain or a driver; allowed is "
                     "a family with a device_id alone: it means its fastest trial of whatever time"));
  }
  return side;
}

bool Fits(const v1::Dependencies& dependencies, const store::Instance& card, const Side& side) {
  return (side.toolchain.empty() || side.toolchain == dependencies.toolchain()) &&
         (side.driver.empty() || side.driver == dependencies.driver()) &&
         (!side.card.has_value() || SameCard(card, *side.card));
}

v1::Retiming AsRetiming(const v1::Trial& trial, const v1::Timing& timing) {
  v1::Retiming retiming;
  retiming.set_problem_text(trial.problem_text());
  retiming.set_device_id(trial.device_id());
  retiming.set_device_uuid(trial.device_uuid());
  retiming.set_policy(trial.policy());
  retiming.set_variant(trial.variant().text());
  *retiming.mutable_timing() = timing;
  *retiming.mutable_dependencies() = trial.dependencies();
  retiming.set_job(trial.job());
  *retiming.mutable_finish_time() = trial.finish_time();
  retiming.set_count(1);
  return retiming;
}

// Of the last night in which the variant was timed, its re-timing of the lower median; a night with another process on
// the device only if there is no other.
std::optional<v1::Retiming> LastNight(const std::vector<v1::Retiming>& newest_first, const std::string& variant) {
  std::vector<v1::Retiming> of_it;
  std::copy_if(newest_first.begin(), newest_first.end(), std::back_inserter(of_it),
               [&variant](const v1::Retiming& retiming) { return retiming.variant() == variant; });
  if (of_it.empty()) return std::nullopt;
  const auto contended = [](const v1::Retiming& retiming) { return retiming.timing().contended(); };
  if (!std::all_of(of_it.begin(), of_it.end(), contended)) std::erase_if(of_it, contended);
  Night night = std::move(NightsOf(std::move(of_it)).back());
  std::sort(night.begin(), night.end(), [](const v1::Retiming& a, const v1::Retiming& b) {
    return a.timing().median_us() < b.timing().median_us();
  });
  v1::Retiming median = night[(night.size() - 1) / 2];
  median.set_count(static_cast<int32_t>(night.size()));
  return median;
}

absl::StatusOr<std::optional<v1::Retiming>> FastestTrial(const Side& side, const v1::Incumbent& served,
                                                         store::Store& store) {
  v1::TrialFilter filter;
  filter.set_problem(served.problem_text());
  filter.set_device_class(served.device_class());
  filter.set_family(side.family);
  filter.set_policy(served.policy());
  filter.add_verdicts(v1::VERDICT_OK);
  if (side.card.has_value() && side.card->uuid.empty()) filter.set_device_id(side.card->id);
  if (side.card.has_value()) filter.set_device_uuid(side.card->uuid);
  const auto fastest = store.ListTrials(filter, v1::ListTrialsRequest::ORDER_FASTEST, 1, "");
  if (!fastest.ok()) return fastest.status();
  if (fastest->items.empty() || fastest->items.front().timing().median_us() <= 0) return std::nullopt;
  return AsRetiming(fastest->items.front(), fastest->items.front().timing());
}

// The time of what `served` is served for that a side means: of what was served then, in the last night that fits, or
// else in the play-off that promoted it. Where what was served then has no such time, that of what was served before.
// nullopt: there is none.
absl::StatusOr<std::optional<v1::Retiming>> TimeOn(const Side& side, const v1::Incumbent& served, store::Store& store) {
  if (!side.family.empty()) return FastestTrial(side, served, store);
  const absl::StatusOr<std::vector<v1::Incumbent>> history = HistoryOf(served, store);
  if (!history.ok()) return history.status();
  absl::StatusOr<std::vector<v1::Retiming>> retimings = RetimingsOf(served, absl::InfinitePast(), side.end, store);
  if (!retimings.ok()) return retimings.status();
  std::erase_if(*retimings, [&side](const v1::Retiming& retiming) {
    return !Fits(retiming.dependencies(), CardOf(retiming), side);
  });
  for (const v1::Incumbent& incumbent : *history) {
    // One that was served again after a roll-back has a later one above it, which is rolled back.
    if (incumbent.rolled_back() || TimeOf(incumbent.promote_time()) >= side.end) continue;
    std::optional<v1::Retiming> last = LastNight(*retimings, incumbent.trial().variant().text());
    if (last.has_value()) return last;
    if (!Fits(incumbent.trial().dependencies(), catalog::InstanceOf(incumbent.trial()), side)) continue;
    v1::Retiming then = AsRetiming(incumbent.trial(), catalog::ServedTiming(incumbent));
    *then.mutable_finish_time() = incumbent.promote_time();
    return then;
  }
  return std::nullopt;
}

v1::CompareTimesResponse::Comparison ComparisonOf(Reading reading) {
  switch (reading) {
    case Reading::kSame:
      return v1::CompareTimesResponse::COMPARISON_SAME;
    case Reading::kFaster:
      return v1::CompareTimesResponse::COMPARISON_FASTER;
    case Reading::kSlower:
      return v1::CompareTimesResponse::COMPARISON_SLOWER;
    case Reading::kUnclear:
      break;
  }
  return v1::CompareTimesResponse::COMPARISON_UNCLEAR;
}

// Times of different cards of one class tell of the cards, unless somebody asked for that.
bool AreComparable(const v1::Retiming& from, const v1::Retiming& to, bool cards_named) {
  const bool one_class = from.dependencies().device_fingerprint() == to.dependencies().device_fingerprint();
  return !from.timing().contended() && (cards_named || !one_class || SameCard(CardOf(from), CardOf(to)));
}

TimesRow TimesRowOf(const std::string& problem, std::optional<v1::Retiming> from, std::optional<v1::Retiming> to,
                    double regression, bool cards_named) {
  TimesRow row;
  row.set_problem(problem);
  if (from.has_value() && to.has_value()) {
    row.set_comparison(AreComparable(*from, *to, cards_named)
                           ? ComparisonOf(Read(from->timing(), to->timing(), regression))
                           : v1::CompareTimesResponse::COMPARISON_UNCLEAR);
    row.set_speedup(from->timing().median_us() / to->timing().median_us());
  } else {
    row.set_comparison(from.has_value() ? v1::CompareTimesResponse::COMPARISON_ONLY_FROM
                                        : v1::CompareTimesResponse::COMPARISON_ONLY_TO);
  }
  if (from.has_value()) *row.mutable_from() = *std::move(from);
  if (to.has_value()) *row.mutable_to() = *std::move(to);
  return row;
}

// What differs first, the most first.
bool ComesBefore(const TimesRow& a, const TimesRow& b) {
  const auto rank = [](const TimesRow& row) {
    switch (row.comparison()) {
      case v1::CompareTimesResponse::COMPARISON_FASTER:
      case v1::CompareTimesResponse::COMPARISON_SLOWER:
        return std::pair(0, -std::abs(std::log(row.speedup())));
      case v1::CompareTimesResponse::COMPARISON_UNCLEAR:
        return std::pair(1, 0.0);
      case v1::CompareTimesResponse::COMPARISON_SAME:
        return std::pair(2, 0.0);
      default:
        return std::pair(3, 0.0);
    }
  };
  return std::tuple(rank(a), a.problem()) < std::tuple(rank(b), b.problem());
}

// What is served under the policy, by problem and class.
using ServedByClass = std::map<std::string, std::map<std::string, v1::Incumbent>>;

absl::StatusOr<ServedByClass> ReadServed(const v1::CompareTimesRequest& request, store::Store& store,
                                         const std::function<bool()>& stopped) {
  store::IncumbentFilter filter{.problem_text = request.problem()};
  filter.policy = request.policy();
  ServedByClass served;
  std::string token;
  do {
    if (stopped()) return absl::CancelledError("nobody waits for the comparison any more");
    absl::StatusOr<store::Page<v1::Incumbent>> page = store.ListIncumbents(filter, store::kMostPageSize, token);
    if (!page.ok()) return page.status();
    for (v1::Incumbent& incumbent : page->items) {
      v1::Incumbent& place = served[incumbent.problem_text()][incumbent.device_class()];
      place = std::move(incumbent);
    }
    token = page->next_page_token;
    if (served.size() > kMostProblems) {
      return absl::InvalidArgumentError(
          absl::StrCat("problem is empty, and more than ", kMostProblems, " problems are served; name one"));
    }
  } while (!token.empty());
  return served;
}

// The classes that are compared with each other, of those where the problem is served.
std::vector<std::pair<const v1::Incumbent*, const v1::Incumbent*>> Pairs(
    const std::map<std::string, v1::Incumbent>& by_class, const Side& from, const Side& to) {
  const auto find = [&by_class](const std::string& device_class) -> const v1::Incumbent* {
    const auto found = by_class.find(device_class);
    return found == by_class.end() ? nullptr : &found->second;
  };
  if (!from.device_class.empty() && !to.device_class.empty()) return {{find(from.device_class), find(to.device_class)}};
  const std::string& only = from.device_class.empty() ? to.device_class : from.device_class;
  if (!only.empty()) return {{find(only), find(only)}};
  std::vector<std::pair<const v1::Incumbent*, const v1::Incumbent*>> pairs;
  for (const auto& [device_class, incumbent] : by_class) pairs.emplace_back(&incumbent, &incumbent);
  return pairs;
}

}  // namespace

absl::StatusOr<v1::CompareTimesResponse> CompareTimes(const v1::CompareTimesRequest& request, store::Store& store,
                                                      const catalog::Host& host, const std::function<bool()>& stopped) {
  const absl::StatusOr<Side> from = SideOf("from", request.from(), host);
  if (!from.ok()) return from.status();
  const absl::StatusOr<Side> to = SideOf("to", request.to(), host);
  if (!to.ok()) return to.status();
  const absl::StatusOr<ServedByClass> served = ReadServed(request, store, stopped);
  if (!served.ok()) return served.status();
  const double regression = request.regression() > 0 ? request.regression() : TrendTerms{}.regression;
  v1::CompareTimesResponse response;
  double logs = 0;
  int compared = 0;
  for (const auto& [problem, by_class] : *served) {
    if (stopped()) return absl::CancelledError("nobody waits for the comparison any more");
    for (const auto& [one, other] : Pairs(by_class, *from, *to)) {
      absl::StatusOr<std::optional<v1::Retiming>> before = std::nullopt;
      absl::StatusOr<std::optional<v1::Retiming>> after = std::nullopt;
      if (one != nullptr) before = TimeOn(*from, *one, store);
      if (!before.ok()) return before.status();
      if (other != nullptr) after = TimeOn(*to, *other, store);
      if (!after.ok()) return after.status();
      if (!before->has_value() && !after->has_value()) continue;
      TimesRow row = TimesRowOf(problem, *std::move(before), *std::move(after), regression,
                                from->card.has_value() && to->card.has_value());
      if (row.speedup() > 0) {
        logs += std::log(row.speedup());
        ++compared;
      }
      *response.add_rows() = std::move(row);
    }
  }
  std::sort(response.mutable_rows()->begin(), response.mutable_rows()->end(), ComesBefore);
  if (compared > 0) response.set_geometric_mean(std::exp(logs / compared));
  return response;
}

}  // namespace attune::sweep
