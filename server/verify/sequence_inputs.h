// Lengths and page tables of a problem whose sequences have lengths of their own, drawn as Q, K and V are.
#ifndef ATTUNE_SERVER_VERIFY_SEQUENCE_INPUTS_H_
#define ATTUNE_SERVER_VERIFY_SEQUENCE_INPUTS_H_

#include <cstdint>
#include <vector>

#include "proto/attune/problem.h"
#include "server/verify/verify.h"

namespace attune::verify {

// The lengths of a distribution: SequenceLengths for kNormal, on which problems are timed. The others have the same
// totals; sequences have more queries than keys, no key, no query or one of either (the latter where there are enough
// sequences), and most lengths are multiples of nothing. With pages, the lengths of kCounting end anywhere in a page,
// with fewer keys in all. Those that the problem fixes stay as they are.
Lengths LengthsFor(const Problem& problem, Distribution distribution);

// Pages of a cache in the order of `random`. One page more than is used belongs to nobody; -1 stands behind a
// sequence's last page.
struct Paging {
  std::vector<int32_t> table;  // [batch, ceil(seq_kv / page_size)]
  int64_t pages = 0;
};
Paging ShufflePages(const Problem& problem, const std::vector<int64_t>& kv_lengths, uint64_t random);

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_SEQUENCE_INPUTS_H_
