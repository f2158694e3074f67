#include "client/cli/history_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/text.h"
#include "proto/attune/problem.h"

namespace attune::cli {
namespace {

// The card and the policy: what makes two times comparable.
using Curve = std::pair<std::string, v1::Policy>;

Curve CurveOf(const v1::Retiming& retiming) {
  return {retiming.device_uuid().empty() ? retiming.device_id() : retiming.device_uuid(), retiming.policy()};
}

}  // namespace

void PlotScale::Add(const v1::Timing& timing) {
  low = std::min(low, timing.low_us() > 0 ? timing.low_us() : timing.median_us());
  high = std::max({high, timing.high_us(), timing.median_us()});
}

std::string PlotScale::ToText() const { return absl::StrCat(Micros(low), " .. ", Micros(high)); }

std::string PlotLine(const v1::Timing& timing, double low, double high, size_t width) {
  if (width == 0 || !(high > low) || !std::isfinite(low) || !std::isfinite(high)) return "";
  const auto column = [&](double us) {
    if (!std::isfinite(us)) us = low;
    const double place = (std::clamp(us, low, high) - low) / (high - low) * static_cast<double>(width - 1);
    return static_cast<size_t>(std::lround(place));
  };
  std::string line(width, ' ');
  const double begin = timing.low_us() > 0 ? timing.low_us() : timing.median_us();
  const double end = timing.high_us() > 0 ? timing.high_us() : timing.median_us();
  for (size_t i = column(begin); i <= column(end); ++i) line[i] = '-';
  line[column(timing.median_us())] = '*';
  return line;
}

std::string WhatChanged(const v1::Retiming& retiming, const v1::Retiming& before) {
  const v1::Dependencies& now = retiming.dependencies();
  const v1::Dependencies& then = before.dependencies();
  std::vector<std::string> changed;
  if (retiming.variant() != before.variant()) changed.emplace_back("variant");
  if (now.driver() != then.driver()) changed.push_back(absl::StrCat("driver ", then.driver(), " to ", now.driver()));
  if (now.toolchain() != then.toolchain()) {
    changed.push_back(absl::StrCat("toolchain ", then.toolchain(), " to ", now.toolchain()));
  }
  if (now.source_hash() != then.source_hash() && retiming.variant() == before.variant()) {
    changed.emplace_back("sources");
  }
  return absl::StrJoin(changed, ", ");
}

Table TimesTable(const std::vector<v1::Retiming>& newest_first) {
  PlotScale scale;
  std::set<Curve> curves;
  std::set<v1::Policy> policies;
  bool thinned = false;
  for (const v1::Retiming& retiming : newest_first) {
    scale.Add(retiming.timing());
    curves.insert(CurveOf(retiming));
    policies.insert(retiming.policy());
    thinned = thinned || retiming.count() > 1;
  }
  Table table({{"timed"},
               {"device", kText, curves.size() > policies.size() ? 0 : 3},
               {"policy", kText, policies.size() > 1 ? 0 : 4},
               {"time us", kNumber},
               {"interval", kText, 2},
               {thinned ? "of" : "", kNumber, 5},
               {scale.ToText()},
               {"changed", kFlexible}});
  std::map<Curve, v1::Retiming> before;
  for (auto it = newest_first.rbegin(); it != newest_first.rend(); ++it) {
    const v1::Timing& timing = it->timing();
    const auto [last, first] = before.try_emplace(CurveOf(*it), *it);
    const std::string changed = first ? "" : WhatChanged(*it, last->second);
    last->second = *it;
    table.Row({LocalTime(it->finish_time()), it->device_id(), std::string(attune::Word(it->policy())),
               Micros(timing.median_us()), absl::StrCat(Micros(timing.low_us()), "..", Micros(timing.high_us())),
               it->count() > 1 ? absl::StrCat(it->count()) : "", PlotLine(timing, scale.low, scale.high, kPlotWidth),
               absl::StrCat(timing.contended() ? "contended" : "", timing.contended() && !changed.empty() ? ", " : "",
                            changed)});
  }
  return table;
}

}  // namespace attune::cli
