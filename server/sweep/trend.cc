#include "server/sweep/trend.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "proto/attune/problem.h"
#include "server/base/proto_time.h"
#include "server/catalog/host.h"
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

// At most `most` points of equal spans of time, each the lower median of its span.
void AddPoints(const std::vector<const v1::Retiming*>& oldest_first, int most, v1::Trend& trend) {
  if (oldest_first.empty() || most <= 0) return;
  const absl::Time begin = TimeOf(oldest_first.front()->finish_time());
  const absl::Duration whole = TimeOf(oldest_first.back()->finish_time()) - begin;
  const auto span_of = [&](const v1::Retiming* retiming) {
    if (whole <= absl::ZeroDuration()) return int64_t{0};
    const double share = absl::FDivDuration(TimeOf(retiming->finish_time()) - begin, whole);
    return std::min<int64_t>(static_cast<int64_t>(share * most), most - 1);
  };
  for (size_t i = 0; i < oldest_first.size();) {
    size_t end = i;
    while (end < oldest_first.size() && span_of(oldest_first[end]) == span_of(oldest_first[i])) ++end;
    std::vector<const v1::Retiming*> span(oldest_first.begin() + static_cast<std::ptrdiff_t>(i),
                                          oldest_first.begin() + static_cast<std::ptrdiff_t>(end));
    const auto median = span.begin() + (static_cast<std::ptrdiff_t>(span.size()) - 1) / 2;
    std::nth_element(span.begin(), median, span.end(), [](const v1::Retiming* a, const v1::Retiming* b) {
      return a->timing().median_us() < b->timing().median_us();
    });
    v1::TrendPoint& point = *trend.add_points();
    *point.mutable_time() = (*median)->finish_time();
    point.set_median_us((*median)->timing().median_us());
    point.set_low_us((*median)->timing().low_us());
    point.set_high_us((*median)->timing().high_us());
    for (const v1::Retiming* retiming : span) {
      point.set_low_us(std::min(point.low_us(), retiming->timing().low_us()));
      point.set_high_us(std::max(point.high_us(), retiming->timing().high_us()));
    }
    point.set_count(static_cast<int32_t>(span.size()));
    i = end;
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

std::vector<Nightly> Judge(const std::vector<Night>& nights, const v1::Timing& reference, const store::Instance& card,
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
                  std::vector<v1::Retiming> retimings, const TrendTerms& terms) {
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
  const v1::Incumbent& reference = ReferenceOf(served, history, terms);
  *trend.mutable_reference() = catalog::ServedTiming(reference);
  *trend.mutable_reference_time() = reference.promote_time();
  trend.set_reference_variant(reference.trial().variant().text());
  if (const auto problem = FromProto(served.problem()); problem.ok()) {
    trend.set_flops(Flops(*problem));
    trend.set_bytes(Bytes(*problem));
  }

  std::erase_if(retimings, [&terms](const v1::Retiming& retiming) {
    const absl::Time time = TimeOf(retiming.finish_time());
    return time < terms.begin || time >= terms.end;
  });
  const std::vector<Night> all_nights = NightsOf(std::move(retimings));
  std::vector<Night> nights;  // after the reference
  for (const Night& night : all_nights) {
    if (TimeOf(night.back().finish_time()) > TimeOf(reference.promote_time())) nights.push_back(night);
  }
  trend.set_state(v1::Trend::STATE_NOT_TIMED);
  store::Instance drawn = catalog::InstanceOf(served.trial());
  if (!nights.empty()) {
    const std::vector<Nightly> judged =
        Judge(nights, trend.reference(), catalog::InstanceOf(served.trial()), history, terms.regression);
    size_t last = judged.size();
    while (last > 0 && !judged[last - 1].state.has_value()) --last;
    trend.set_unsettled_nights(static_cast<int32_t>(judged.size() - last));
    const Nightly& night = last > 0 ? judged[last - 1] : judged.back();
    const v1::Retiming& latest = LastOf(night);
    trend.set_state(night.state.value_or(v1::Trend::STATE_AMBIGUOUS));
    *trend.mutable_latest() = latest.timing();
    *trend.mutable_latest_time() = latest.finish_time();
    trend.set_latest_device_id(latest.device_id());
    trend.set_latest_job(latest.job());
    drawn = CardOf(latest);
    if (trend.state() != v1::Trend::STATE_MOVED) {
      trend.set_change(latest.timing().median_us() / trend.reference().median_us() - 1);
    }
    if (last > 0) {
      const auto [first, count] = StreakOf(judged, last - 1);
      const v1::Retiming& from = judged[first].compared.empty() ? judged[first].all->front()  //
                                                                : *judged[first].compared.front();
      *trend.mutable_since() = from.finish_time();
      trend.set_nights(count);
      // What changed before the range of time is not known to have changed then.
      const bool knows_before = TimeOf(reference.promote_time()) >= terms.begin;
      if (trend.state() != v1::Trend::STATE_SAME) {
        size_t before = first;  // the last night that said something else
        while (before > 0 && !judged[before - 1].state.has_value()) --before;
        const Circumstances then =
            before > 0 ? Of(LastOf(judged[before - 1]))
                       : Circumstances{reference.trial().dependencies(), reference.trial().variant().text(),
                                       catalog::InstanceOf(reference.trial())};
        if (before > 0 || knows_before) AddChanges(then, Of(from), trend);
      }
    }
  }
  std::vector<const v1::Retiming*> curve;
  for (const Night& night : all_nights) {
    for (const v1::Retiming& retiming : night) {
      if (SameCard(CardOf(retiming), drawn)) curve.push_back(&retiming);
    }
  }
  AddPoints(curve, terms.points, trend);
  return trend;
}

}  // namespace attune::sweep
