// How long what is served took, time after time, drawn for people.
#ifndef ATTUNE_CLIENT_CLI_HISTORY_TIMES_H_
#define ATTUNE_CLIENT_CLI_HISTORY_TIMES_H_

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "attune/v1/retiming.pb.h"
#include "client/cli/table.h"

namespace attune::cli {

// From the least to the greatest of some times.
struct PlotScale {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;

  void Add(const v1::Timing& timing);
  std::string ToText() const;  // "12.30 .. 45.60", in us
};

inline constexpr size_t kPlotWidth = 30;

// "  --*-  ": an interval and, as "*", its median, on a scale of `width` columns from `low` to `high` microseconds.
// Nothing where one of them is no number or the scale is empty.
std::string PlotLine(const v1::Timing& timing, double low, double high, size_t width);

// What differs from the time before it of the same card and policy: "variant", "driver", "toolchain", "sources", with
// commas between; empty for the first.
std::string WhatChanged(const v1::Retiming& retiming, const v1::Retiming& before);

// Oldest first, each with its line on one scale.
Table TimesTable(const std::vector<v1::Retiming>& newest_first);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_HISTORY_TIMES_H_
