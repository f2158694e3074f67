// Where rows of Q, K, V, O and LSE lie in memory, and which keys a query row sees (docs/problems.md, v1::BufferRole).
#ifndef ATTUNE_SERVER_VERIFY_ROW_MAP_H_
#define ATTUNE_SERVER_VERIFY_ROW_MAP_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "proto/attune/problem.h"

namespace attune::verify {

// Rows of Q and O, over all heads: as many as LSE has elements.
inline int64_t QueryRows(const Problem& problem) { return SequenceLengths(problem).total_q() * problem.heads_q; }

// Where each sequence begins, and the total.
std::vector<int64_t> BoundsOf(const std::vector<int64_t>& lengths);

// The key columns [first, end) that a query row sees; empty when first >= end.
struct VisibleKeys {
  int64_t first, end;
};

// Rows count within their sequence and head.
class RowMap {
 public:
  // `page_table` is empty when the problem has no pages, and outlives this.
  RowMap(const Problem& problem, Lengths lengths, absl::Span<const int32_t> page_table);

  // A query row by its number among all of them, which count up sequence by sequence, head by head.
  struct QueryRow {
    int64_t sequence, head, row;
  };
  QueryRow At(int64_t number) const;

  // Element index of the first of a row's head_dim elements, in Q and O; in K and V.
  int64_t Query(const QueryRow& at) const;
  int64_t Key(int64_t sequence, int64_t head_kv, int64_t row) const;
  int64_t Lse(const QueryRow& at) const;

  VisibleKeys Visible(const QueryRow& at) const;

  const Lengths& lengths() const { return lengths_; }

 private:
  Problem problem_;
  Lengths lengths_;
  absl::Span<const int32_t> page_table_;
  int64_t pages_a_sequence_;
  std::vector<int64_t> q_bounds_, kv_bounds_;
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_ROW_MAP_H_
