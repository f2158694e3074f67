// Which answers hold for more than their own problem: for lengths or batches in a range (attune.v1.Domain). Private to
// client/cpp/launch.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_RANGES_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/domain.h"
#include "proto/attune/problem.h"

namespace attune::launch {

// Which answer holds for a problem. Not thread-safe. `Source` is a shared_ptr.
template <typename Source>
class Ranges {
 public:
  void Add(const v1::GetBestResponse& answer, const Problem& answered, const Source& source) {
    for (const v1::Domain& domain : answer.domains()) {
      of_[Key(domain.axis(), answered)].insert_or_assign(domain.low(), Range{domain.high(), source});
    }
  }
  // Forgets the ranges of each source that `is_gone`; whether there were any.
  bool Remove(absl::FunctionRef<bool(const Source&)> is_gone) {
    size_t removed = 0;
    absl::erase_if(of_, [&](auto& ranges) {
      removed += std::erase_if(ranges.second, [&](const auto& range) { return is_gone(range.second.source); });
      return ranges.second.empty();
    });
    return removed > 0;
  }
  // Null when there is none.
  Source Find(const Problem& problem) const {
    for (const v1::Domain::Axis axis : AxesOf(problem)) {
      const auto ranges = of_.find(Key(axis, problem));
      if (ranges == of_.end()) continue;
      const int64_t length = LengthAlong(axis, problem);
      const auto above = ranges->second.upper_bound(length);
      if (above == ranges->second.begin()) continue;
      if (const Range& range = std::prev(above)->second; length <= range.high) return range.source;
    }
    return nullptr;
  }

 private:
  struct Range {
    int64_t high;
    Source source;
  };
  // All problems that differ along `axis` alone have the same one.
  static std::string Key(v1::Domain::Axis axis, const Problem& problem) {
    constexpr int64_t kAnyLength = int64_t{1} << 24;
    return ToText(WithLength(axis, kAnyLength, problem)) + "/" + v1::Domain::Axis_Name(axis);
  }

  absl::flat_hash_map<std::string, std::map<int64_t, Range>> of_;  // by key, then by the lowest length
};

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_RANGES_H_
