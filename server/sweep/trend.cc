#include "server/sweep/trend.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "proto/attune/problem.h"
#include "server/base/proto_time.h"
#include "server/catalog/host.h"
#include "server/catalog/retimings.h"
#include "server/catalog/served_timing.h"
#include "server/sweep/history_of.h"
#include "server/sweep/sweep_outcome.h"

namespace attune::sweep {
namespace {

using State = v1::Trend::State;

std::string NameOf(const store::Instance& card) { return card.uuid.empty() ? card.id : card.uuid; }

// One night, as far as it is compared.
struct Nightly {
  const Night* all = nullptr;
  std::vector<const v1::Retiming*> compared = {};  // on the reference's card; empty: another card timed it
  std::optional<State> state = std::nullopt;       // nullopt: nothing is settled by it
  Reading last = Reading::kUnclear;
};

State StateOf(Reading reading) {
  switch (reading) {
    case Reading::kFaster:
      return v1::Trend::STATE_FASTER;
    case Reading::kSlower:
      return v1::Trend::STATE_SLOWER;
    case Reading::kSame:
      return v1::Trend::STATE_SAME;
    case Reading::kUnclear:
      break;
  }
  return v1::Trend::STATE_AMBIGUOUS;
}

std::optional<State> Settled(const std::vector<Reading>& readings) {
  const std::optional<Reading> confirmed = Confirmed(readings);
  if (!confirmed.has_value()) return std::nullopt;
  return StateOf(*confirmed);
}

// The variant that was served once the night was over; empty: it is not known.
std::string ServedAfter(const Night& night, const std::vector<v1::Incumbent>& history) {
  for (const v1::Incumbent& incumbent : history) {
    const bool promoted_by_it = !incumbent.job().empty() && incumbent.job() == night.back().job();
    if (promoted_by_it || TimeOf(incumbent.promote_time()) <= TimeOf(night.front().finish_time())) {
      return incumbent.trial().variant().text();
    }
  }
  return "";
}

// The re-timings on the card of the variant that was served after the night; if it has none, of that timed last.
std::vector<const v1::Retiming*> Compared(const Night& night, const store::Instance& card,
                                          const std::vector<v1::Incumbent>& history) {
  std::vector<const v1::Retiming*> here;
  for (const v1::Retiming& retiming : night) {
    if (SameCard(CardOf(retiming), card)) here.push_back(&retiming);
  }
  if (here.empty()) return here;
  std::string variant = ServedAfter(night, history);
  const auto is_of_it = [&variant](const v1::Retiming* retiming) { return retiming->variant() == variant; };
  if (std::none_of(here.begin(), here.end(), is_of_it)) variant = here.back()->variant();
  std::erase_if(here, [&is_of_it](const v1::Retiming* retiming) { return !is_of_it(retiming); });
  return here;
}

void AddChange(const std::string& what, const std::string& from, const std::string& to, v1::Trend& trend) {
  if (from == to) return;
  v1::DependencyChange& change = *trend.add_changes();
  change.set_what(what);
  change.set_from(from);
  change.set_to(to);
}

// A point of time at which a variant was timed, with all that its time depends on.
struct Circumstances {
  const v1::Dependencies& dependencies;
  const std::string& variant;
  store::Instance card;
};

void AddChanges(const Circumstances& before, const Circumstances& after, v1::Trend& trend) {
  AddChange("driver", before.dependencies.driver(), after.dependencies.driver(), trend);
  AddChange("toolchain", before.dependencies.toolchain(), after.dependencies.toolchain(), trend);
  AddChange("variant", before.variant, after.variant, trend);
  if (before.variant == after.variant) {
    AddChange("source", before.dependencies.source_hash(), after.dependencies.source_hash(), trend);
  }
  if (!SameCard(before.card, after.card)) AddChange("card", NameOf(before.card), NameOf(after.card), trend);
}

Circumstances Of(const v1::Retiming& retiming) {
  return {retiming.dependencies(), retiming.variant(), CardOf(retiming)};
}

// The curve of one card, whichever variants were served on it.
void AddPoints(const std::vector<v1::Retiming>& newest_first, const store::Instance& card, int most, v1::Trend& trend) {
  if (most <= 0) return;
  std::vector<v1::Retiming> curve;
  for (const v1::Retiming& retiming : newest_first) {
    if (!SameCard(CardOf(retiming), card)) continue;
    curve.push_back(retiming);
    curve.back().clear_variant();
  }
  const std::vector<v1::Retiming> thinned = catalog::Thinned(std::move(curve), most);
  for (auto retiming = thinned.rbegin(); retiming != thinned.rend(); ++retiming) {
    v1::TrendPoint& point = *trend.add_points();
    *point.mutable_time() = retiming->finish_time();
    point.set_median_us(retiming->timing().median_us());
    point.set_low_us(retiming->timing().low_us());
    point.set_high_us(retiming->timing().high_us());
    point.set_count(retiming->count());
  }
}

// The fastest of what was served on the card of `served`.
const v1::Incumbent& ReferenceOf(const v1::Incumbent& served, const std::vector<v1::Incumbent>& history,
                                 const TrendTerms& terms) {
  const v1::Incumbent* fastest = &served;
  if (served.pinned()) return *fastest;
  for (const v1::Incumbent& incumbent : history) {
    const absl::Time promoted = TimeOf(incumbent.promote_time());
    if (incumbent.rolled_back() || promoted < terms.begin || promoted >= terms.end) continue;
    if (!SameCard(catalog::InstanceOf(incumbent.trial()), catalog::InstanceOf(served.trial()))) continue;
    const double median_us = catalog::ServedTiming(incumbent).median_us();
    if (median_us > 0 && median_us < catalog::ServedTiming(*fastest).median_us()) fastest = &incumbent;
  }
  return *fastest;
}

// A change near the threshold lies below it in some nights: one night that says SAME does not end what two before it
// have confirmed.
void DoubtSingleNights(std::vector<Nightly>& nights) {
  std::vector<std::optional<State>> said;
  for (const Nightly& night : nights) said.push_back(night.state);
  for (size_t i = 2; i < nights.size(); ++i) {
    const bool confirmed = said[i - 1] == v1::Trend::STATE_SLOWER || said[i - 1] == v1::Trend::STATE_FASTER;
    if (said[i] == v1::Trend::STATE_SAME && confirmed && said[i - 1] == said[i - 2]) nights[i].state = std::nullopt;
  }
}

std::vector<Nightly> Judge(absl::Span<const Night> nights, const v1::Timing& reference, const store::Instance& card,
                           const std::vector<v1::Incumbent>& history, double regression) {
  std::vector<Nightly> judged;
  std::vector<Reading> readings;
  for (const Night& night : nights) {
    Nightly& nightly = judged.emplace_back(Nightly{.all = &night, .compared = Compared(night, card, history)});
    for (const v1::Retiming* retiming : nightly.compared) {
      readings.push_back(Read(reference, retiming->timing(), regression));
    }
    nightly.state = nightly.compared.empty() ? v1::Trend::STATE_MOVED : Settled(readings);
    if (!nightly.compared.empty()) nightly.last = readings.back();
  }
  DoubtSingleNights(judged);
  return judged;
}

const v1::Retiming& FirstOf(const Nightly& night) {
  return night.compared.empty() ? night.all->front() : *night.compared.front();
}
const v1::Retiming& LastOf(const Nightly& night) {
  return night.compared.empty() ? night.all->back() : *night.compared.back();
}

// Since when the nights have the state of `last`, and how many of them do. A change near the threshold is missed by
// some nights, and a night may be slow by chance before it: of all nights it is the one from which the nights with the
// state exceed those without by most (the cumulative sum of E. S. Page, Biometrika 41, 1954).
std::pair<size_t, int32_t> StreakOf(const std::vector<Nightly>& nights, size_t last) {
  size_t first = last;
  int32_t count = 0;
  int32_t excess = 0;
  int32_t most = 0;
  int32_t having = 0;
  for (size_t i = last + 1; i-- > 0;) {
    if (!nights[i].state.has_value()) continue;
    const bool has = nights[i].state == nights[last].state;
    excess += has ? 1 : -1;
    having += has ? 1 : 0;
    if (excess <= most) continue;
    most = excess;
    first = i;
    count = having;
  }
  // Nights that already said so, but were too few to be sure.
  while (first > 0 && !nights[first - 1].state.has_value() && StateOf(nights[first - 1].last) == *nights[last].state) {
    --first;
    ++count;
  }
  return {first, count};
}

// What is known without any night.
v1::Trend Described(const v1::Incumbent& served, const v1::Incumbent& reference) {
  v1::Trend trend;
  trend.set_problem_text(served.problem_text());
  trend.set_device_class(served.device_class());
  trend.set_policy(served.policy());
  trend.set_incumbent(served.name());
  trend.set_variant(served.trial().variant().text());
  trend.set_pinned(served.pinned());
  trend.set_device_id(served.trial().device_id());
  trend.set_device_uuid(served.trial().device_uuid());
  *trend.mutable_served() = catalog::ServedTiming(served);
  *trend.mutable_promote_time() = served.promote_time();
  *trend.mutable_reference() = catalog::ServedTiming(reference);
  *trend.mutable_reference_time() = reference.promote_time();
  trend.set_reference_variant(reference.trial().variant().text());
  if (const auto problem = FromProto(served.problem()); problem.ok()) {
    trend.set_flops(Flops(*problem));
    trend.set_bytes(Bytes(*problem));
  }
  return trend;
}

void SayLatest(const Nightly& night, v1::Trend& trend) {
  const v1::Retiming& latest = LastOf(night);
  trend.set_state(night.state.value_or(v1::Trend::STATE_AMBIGUOUS));
  *trend.mutable_latest() = latest.timing();
  *trend.mutable_latest_time() = latest.finish_time();
  trend.set_latest_device_id(latest.device_id());
  trend.set_latest_job(latest.job());
  if (trend.state() == v1::Trend::STATE_MOVED) return;  // not comparable
  trend.set_change(latest.timing().median_us() / trend.reference().median_us() - 1);
}

// Since when the state of the night `last` holds, and what changed then.
void SaySince(const std::vector<Nightly>& nights, size_t last, const v1::Incumbent& reference, const TrendTerms& terms,
              v1::Trend& trend) {
  const auto [first, count] = StreakOf(nights, last);
  const v1::Retiming& from = FirstOf(nights[first]);
  *trend.mutable_since() = from.finish_time();
  trend.set_nights(count);
  if (trend.state() == v1::Trend::STATE_SAME) return;
  size_t before = first;  // the last night that said something else
  while (before > 0 && !nights[before - 1].state.has_value()) --before;
  if (before > 0) {
    AddChanges(Of(LastOf(nights[before - 1])), Of(from), trend);
  } else if (TimeOf(reference.promote_time()) >= terms.begin) {
    // What changed before the range of time is not known to have changed then.
    AddChanges(
        {reference.trial().dependencies(), reference.trial().variant().text(), catalog::InstanceOf(reference.trial())},
        Of(from), trend);
  }
}

}  // namespace

std::vector<Night> NightsOf(std::vector<v1::Retiming> newest_first) {
  std::vector<Night> nights;
  for (size_t i = newest_first.size(); i-- > 0;) {
    if (nights.empty() || nights.back().back().job() != newest_first[i].job()) nights.emplace_back();
    nights.back().push_back(std::move(newest_first[i]));
  }
  return nights;
}

v1::Trend TrendOf(const v1::Incumbent& served, const std::vector<v1::Incumbent>& history,
                  const std::vector<v1::Retiming>& newest_first, const TrendTerms& terms) {
  const v1::Incumbent& reference = ReferenceOf(served, history, terms);
  v1::Trend trend = Described(served, reference);
  const std::vector<Night> nights = NightsOf(newest_first);
  const auto after = std::find_if(nights.begin(), nights.end(), [&reference](const Night& night) {
    return TimeOf(night.back().finish_time()) > TimeOf(reference.promote_time());
  });
  const store::Instance card = catalog::InstanceOf(served.trial());
  if (after == nights.end()) {
    trend.set_state(v1::Trend::STATE_NOT_TIMED);
    AddPoints(newest_first, card, terms.points, trend);
    return trend;
  }
  const std::vector<Nightly> judged = Judge(absl::MakeConstSpan(&*after, static_cast<size_t>(nights.end() - after)),
                                            trend.reference(), card, history, terms.regression);
  size_t settled = judged.size();
  while (settled > 0 && !judged[settled - 1].state.has_value()) --settled;
  trend.set_unsettled_nights(static_cast<int32_t>(judged.size() - settled));
  const Nightly& night = settled > 0 ? judged[settled - 1] : judged.back();
  SayLatest(night, trend);
  if (settled > 0) SaySince(judged, settled - 1, reference, terms, trend);
  AddPoints(newest_first, CardOf(LastOf(night)), terms.points, trend);
  return trend;
}

}  // namespace attune::sweep
