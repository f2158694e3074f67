// Where rows of Q, K, V and O lie in memory.
#ifndef ATTUNE_SERVER_VERIFY_TENSOR_SHAPE_H_
#define ATTUNE_SERVER_VERIFY_TENSOR_SHAPE_H_

#include <algorithm>
#include <cstdint>

#include "proto/attune/problem.h"

namespace attune::verify {

// [batch, heads, seq, dim] in the problem's layout.
struct TensorShape {
  int64_t batch, heads, seq, dim;
  v1::Layout layout;

  int64_t elements() const { return batch * heads * seq * dim; }
  // Element index of the first of a row's `dim` elements.
  int64_t Row(int64_t b, int64_t h, int64_t s) const {
    return (layout == v1::LAYOUT_BSHD ? (b * seq + s) * heads + h : (b * heads + h) * seq + s) * dim;
  }
};

inline TensorShape QueryShape(const Problem& problem) {
  return {problem.batch, problem.heads_q, problem.seq_q, problem.head_dim, problem.layout};
}
inline TensorShape KeyShape(const Problem& problem) {
  return {problem.batch, problem.heads_kv, problem.seq_kv, problem.head_dim, problem.layout};
}

// The key columns [first, end) that a query row sees; empty when first >= end.
struct VisibleKeys {
  int64_t first, end;
};
inline VisibleKeys VisibleTo(const Problem& problem, int64_t row) {
  if (problem.mask == v1::MASK_NONE) return {0, problem.seq_kv};
  const int64_t last = row + CausalOffset(problem);
  const int64_t first = problem.mask == v1::MASK_WINDOW ? std::max<int64_t>(0, last - problem.window + 1) : 0;
  return {first, std::min(last + 1, problem.seq_kv)};
}

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_TENSOR_SHAPE_H_
