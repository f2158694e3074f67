#include "server/forecast/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <queue>

#include "absl/strings/string_view.h"
#include "server/search/field.h"

namespace attune::forecast {
namespace {

constexpr double kStart = 1;        // steps, for beginning an item
constexpr int64_t kMostWaves = 64;  // from there on the last one does not matter
constexpr int64_t kMostResident = 16;
constexpr int64_t kMostItems = 1 << 20;  // of a head: no more are listed

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// When the last of `heads` copies of a head's items is done, of `slots` places.
double Busiest(const std::vector<double>& steps, int64_t heads, bool longest_first, int64_t slots) {
  const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
  const int64_t items = heads * static_cast<int64_t>(steps.size());
  if (*least == *most) return static_cast<double>(CeilDiv(items, slots)) * (*most + kStart);
  if (items <= slots) return *most + kStart;
  if (items > kMostWaves * slots) {
    double total = 0;
    for (double each : steps) total += each + kStart;
    return total * static_cast<double>(heads) / static_cast<double>(slots);
  }
  std::priority_queue<double, std::vector<double>, std::greater<>> free(std::greater<>(),
                                                                        std::vector<double>(slots, 0.0));
  double last = 0;
  const auto give = [&](double each) {
    const double done = free.top() + each + kStart;
    free.pop();
    free.push(done);
    last = std::max(last, done);
  };
  if (longest_first) {
    std::vector<double> sorted = steps;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (double each : sorted) {
      for (int64_t head = 0; head < heads; ++head) give(each);
    }
  } else {
    for (int64_t head = 0; head < heads; ++head) {
      for (double each : steps) give(each);
    }
  }
  return last;
}

// 0 where there is none of that name, or the family has none.
double Named(absl::string_view name, absl::Span<const std::string> names, absl::Span<const double> features) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return 0;
  const double value = features[static_cast<size_t>(it - names.begin())];
  return value == search::kMissing ? 0 : value;
}

}  // namespace

Schedules::Schedules(const Problem& problem, const v1::Device& device) : Schedules(problem, device.compute_units()) {}

Schedules::Schedules(const Problem& problem, int64_t sms)
    : problem_(problem),
      sms_(std::max<int64_t>(1, sms)),
      pairs_(std::max(1.0, Flops(problem) / (4 * static_cast<double>(problem.head_dim)))) {}

std::vector<double> Schedules::StepsOfHead(const WorkItems& work) const {
  const int64_t rows = problem_.seq_q * work.pack;
  const bool masked = problem_.mask != v1::MASK_NONE;
  const int64_t offset = masked ? CausalOffset(problem_) : 0;
  std::vector<double> steps;
  for (int64_t row = 0; row < rows; row += work.block_m) {
    int64_t first = 0;
    int64_t end = problem_.seq_kv;
    if (masked) {
      const int64_t last_query = std::min(row + work.block_m, rows) - 1;
      end = std::clamp<int64_t>(last_query / work.pack + 1 + offset, 0, problem_.seq_kv);
    }
    if (problem_.mask == v1::MASK_WINDOW) {
      first = std::clamp<int64_t>(row / work.pack + offset - problem_.window + 1, 0, problem_.seq_kv);
    }
    const int64_t tiles = std::max<int64_t>(0, CeilDiv(end, work.block_n) - first / work.block_n);
    for (int64_t split = 0; split < work.splits; ++split) {
      steps.push_back(static_cast<double>(tiles * (split + 1) / work.splits - tiles * split / work.splits));
    }
  }
  return steps;
}

Schedule Schedules::Make(const WorkItems& work) const {
  const std::vector<double> steps = StepsOfHead(work);
  const int64_t heads = std::max<int64_t>(1, problem_.batch * problem_.heads_q / work.pack);
  Schedule schedule;
  schedule.items = static_cast<double>(heads) * static_cast<double>(steps.size());
  for (double each : steps) {
    schedule.longest = std::max(schedule.longest, each + kStart);
    schedule.total += static_cast<double>(heads) * (each + kStart);
  }
  schedule.busiest_sm = Busiest(steps, heads, work.longest_first, sms_);
  schedule.busiest_slot = Busiest(steps, heads, work.longest_first, sms_ * work.resident);
  return schedule;
}

const Schedule& Schedules::Of(const WorkItems& work) {
  const Key key = {work.block_m, work.block_n, work.pack, work.splits, work.longest_first, work.resident};
  const auto [it, fresh] = known_.try_emplace(key);
  if (fresh) it->second = Make(work);
  return it->second;
}

const std::vector<std::string>& Schedules::ColumnNames() {
  static const auto& names = *new std::vector<std::string>{
      "schedule.items_an_sm", "schedule.longest",    "schedule.busiest_slot", "schedule.idle", "schedule.latency",
      "schedule.waste",       "schedule.slot_waste", "schedule.warps",        "schedule.rows", "schedule.merged"};
  return names;
}

double Schedules::IdleOf(absl::Span<const double> columns) {
  static const auto place = static_cast<size_t>(
      std::distance(ColumnNames().begin(), std::find(ColumnNames().begin(), ColumnNames().end(), "schedule.idle")));
  return columns[place] == search::kMissing ? 1 : columns[place];
}

std::vector<double> Schedules::Columns(absl::Span<const std::string> names, absl::Span<const double> features) {
  const auto named = [&](absl::string_view name, double least) {
    return std::max(least, Named(name, names, features));
  };
  WorkItems work;
  work.block_m = static_cast<int64_t>(named("BLOCK_M", 0));
  work.block_n = static_cast<int64_t>(named("BLOCK_N", 0));
  if (work.block_m < 1 || work.block_n < 1) return std::vector<double>(ColumnNames().size(), search::kMissing);
  work.pack = static_cast<int64_t>(named("pack", 1));
  work.splits = static_cast<int64_t>(named("KV_SPLITS", 1));
  work.longest_first = named("LONGEST_FIRST", 0) > 0;
  work.resident = std::min<int64_t>(kMostResident, static_cast<int64_t>(named("resident", 1)));
  if (CeilDiv(problem_.seq_q * work.pack, work.block_m) > kMostItems / work.splits) {
    return std::vector<double>(ColumnNames().size(), search::kMissing);
  }
  const Schedule& schedule = Of(work);
  const auto sms = static_cast<double>(sms_);
  const auto resident = static_cast<double>(work.resident);
  const double pairs_of_a_step = static_cast<double>(work.block_m * work.block_n);
  const double items_an_sm = schedule.items / sms;
  const auto rows = static_cast<double>(std::min(work.block_m, problem_.seq_q * work.pack));
  // Over what it would take if every SM computed what is asked for, and nothing else, all the while.
  const double waste = schedule.busiest_sm * pairs_of_a_step * sms / pairs_;
  return {items_an_sm,
          schedule.longest,
          schedule.busiest_slot,
          schedule.busiest_sm * sms / schedule.total,
          schedule.busiest_slot * resident / schedule.busiest_sm,
          waste,
          waste * schedule.busiest_slot * resident / schedule.busiest_sm,
          std::max(1.0, std::min(resident, items_an_sm)) * named("warps", 1),
          rows,
          rows * static_cast<double>(work.splits)};
}

}  // namespace attune::forecast
