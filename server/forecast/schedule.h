// How the work items of a launch fill a device's SMs, worked out before anything runs. A shape that leaves most SMs
// idle in the last wave, or whose longest rows come last, costs more than its neighbours do; no model sees that in the
// parameters of a shape that it has not learned from.
//
// Items go in the order of the launch, each to the place that is free first: list scheduling (Graham, "Bounds for
// certain multiprocessing anomalies", Bell System Technical Journal 45, 1966).
#ifndef ATTUNE_SERVER_FORECAST_SCHEDULE_H_
#define ATTUNE_SERVER_FORECAST_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "attune/v1/device.pb.h"
#include "proto/attune/problem.h"

namespace attune::forecast {

// What of a variant decides its schedule.
struct WorkItems {
  int64_t block_m = 1;         // query rows of an item
  int64_t block_n = 1;         // keys of a step
  int64_t pack = 1;            // query heads that share an item's rows
  int64_t splits = 1;          // parts of the keys, each an item
  bool longest_first = false;  // items with most steps first, else head by head
  int64_t resident = 1;        // CTAs that an SM holds at once
};

// In steps: a step is a tile of block_m rows and block_n keys, and beginning an item counts as one.
struct Schedule {
  double items = 0;
  double longest = 0;       // of an item
  double total = 0;         // of all items
  double busiest_sm = 0;    // where an SM works on one item at a time
  double busiest_slot = 0;  // where each of its `resident` CTAs does
};

// The schedules of one problem's variants on a device; each is worked out once.
class Schedules {
 public:
  Schedules(const Problem& problem, const v1::Device& device);
  // As above, on a device of so many SMs.
  Schedules(const Problem& problem, int64_t sms);

  const Schedule& Of(const WorkItems& work);

  // The names of what a model is given of a schedule (the last two: an item's rows, and how many results of rows are
  // merged where its keys are split), and these of a variant with such features: `names` are those of
  // `features`. All search::kMissing where its family has no BLOCK_M and BLOCK_N, and of more items a head than are
  // worth listing.
  static const std::vector<std::string>& ColumnNames();
  std::vector<double> Columns(absl::Span<const std::string> names, absl::Span<const double> features);
  // Of such columns: how many times longer the busiest SM works than each would if all worked all the while; 1 where
  // that is not known.
  static double IdleOf(absl::Span<const double> columns);

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, int64_t>;

  // Of each item of a head, in the order of its rows.
  std::vector<double> StepsOfHead(const WorkItems& work) const;
  Schedule Make(const WorkItems& work) const;

  const Problem problem_;
  const int64_t sms_;
  const double pairs_;  // of a query and a key that it sees
  std::map<Key, Schedule> known_;
};

}  // namespace attune::forecast

#endif  // ATTUNE_SERVER_FORECAST_SCHEDULE_H_
