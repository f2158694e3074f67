#include "server/verify/row_map.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace attune::verify {

std::vector<int64_t> BoundsOf(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> bounds = {0};
  std::partial_sum(lengths.begin(), lengths.end(), std::back_inserter(bounds));
  return bounds;
}

RowMap::RowMap(const Problem& problem, Lengths lengths, absl::Span<const int32_t> page_table)
    : problem_(problem),
      lengths_(std::move(lengths)),
      page_table_(page_table),
      pages_a_sequence_(page_table.size() / problem.batch),
      q_bounds_(BoundsOf(lengths_.q)),
      kv_bounds_(BoundsOf(lengths_.kv)) {}

RowMap::QueryRow RowMap::At(int64_t number) const {
  // The last sequence that begins at or before the row: those without queries begin where the next one does.
  const int64_t token = number / problem_.heads_q;
  const int64_t sequence = std::upper_bound(q_bounds_.begin(), q_bounds_.end(), token) - q_bounds_.begin() - 1;
  const int64_t in_sequence = number - q_bounds_[sequence] * problem_.heads_q;
  return {sequence, in_sequence / lengths_.q[sequence], in_sequence % lengths_.q[sequence]};
}

int64_t RowMap::Query(const QueryRow& at) const {
  const int64_t row = problem_.layout == v1::LAYOUT_BSHD
                          ? (q_bounds_[at.sequence] + at.row) * problem_.heads_q + at.head
                          : (at.sequence * problem_.heads_q + at.head) * problem_.seq_q + at.row;
  return row * problem_.head_dim;
}

int64_t RowMap::Key(int64_t sequence, int64_t head_kv, int64_t row) const {
  int64_t token = kv_bounds_[sequence] + row;
  if (problem_.page_size > 0) {
    const int64_t page = page_table_[sequence * pages_a_sequence_ + row / problem_.page_size];
    token = page * problem_.page_size + row % problem_.page_size;
  } else if (problem_.layout == v1::LAYOUT_BHSD) {
    return ((sequence * problem_.heads_kv + head_kv) * problem_.seq_kv + row) * problem_.head_dim;
  }
  return (token * problem_.heads_kv + head_kv) * problem_.head_dim;
}

int64_t RowMap::Lse(const QueryRow& at) const {
  if (problem_.varlen) return at.head * q_bounds_.back() + q_bounds_[at.sequence] + at.row;
  return (at.sequence * problem_.heads_q + at.head) * problem_.seq_q + at.row;
}

VisibleKeys RowMap::Visible(const QueryRow& at) const {
  const int64_t keys = lengths_.kv[at.sequence];
  if (problem_.mask == v1::MASK_NONE) return {0, keys};
  const int64_t last = at.row + CausalOffset(problem_.mask, lengths_.q[at.sequence], keys);
  const int64_t first = problem_.mask == v1::MASK_WINDOW ? std::max<int64_t>(0, last - problem_.window + 1) : 0;
  return {first, std::min(last + 1, keys)};
}

}  // namespace attune::verify
