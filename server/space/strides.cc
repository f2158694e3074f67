#include "server/space/strides.h"

#include "absl/strings/str_cat.h"

namespace attune::space {

absl::Status CheckStride(absl::string_view field, const v1::Stride& stride) {
  switch (stride.role()) {
    case v1::BUFFER_ROLE_Q:
    case v1::BUFFER_ROLE_K:
    case v1::BUFFER_ROLE_V:
    case v1::BUFFER_ROLE_O:
      break;
    case v1::BUFFER_ROLE_K_SCALE:
    case v1::BUFFER_ROLE_V_SCALE:
      if (stride.dimension() != v1::Stride::DIMENSION_ROW) break;
      return absl::InvalidArgumentError(
          absl::StrCat(field, ".dimension is DIMENSION_ROW; allowed of scales: DIMENSION_BATCH and DIMENSION_HEAD"));
    default:
      return absl::InvalidArgumentError(absl::StrCat(field, ".role is ", v1::BufferRole_Name(stride.role()),
                                                     "; allowed: BUFFER_ROLE_Q, _K, _V, _O, _K_SCALE and _V_SCALE"));
  }
  if (stride.dimension() == v1::Stride::DIMENSION_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".dimension is not given; allowed: DIMENSION_BATCH, DIMENSION_HEAD and DIMENSION_ROW"));
  }
  return absl::OkStatus();
}

int64_t StrideOf(const Problem& problem, const v1::Stride& stride) {
  if (stride.role() == v1::BUFFER_ROLE_K_SCALE || stride.role() == v1::BUFFER_ROLE_V_SCALE) {
    if (!HasScales(problem)) return 0;
    return stride.dimension() == v1::Stride::DIMENSION_HEAD ? 1 : problem.heads_kv;
  }
  const bool of_queries = stride.role() == v1::BUFFER_ROLE_Q || stride.role() == v1::BUFFER_ROLE_O;
  const bool paged = !of_queries && problem.page_size > 0;
  const int64_t heads = of_queries ? problem.heads_q : problem.heads_kv;
  const int64_t rows = of_queries ? problem.seq_q : paged ? problem.page_size : problem.seq_kv;
  // A page holds its rows as bshd's sequence does, whatever the layout of Q.
  const bool rows_apart = paged || problem.layout == v1::LAYOUT_BSHD;
  switch (stride.dimension()) {
    case v1::Stride::DIMENSION_HEAD:
      return rows_apart ? problem.head_dim : rows * problem.head_dim;
    case v1::Stride::DIMENSION_ROW:
      return rows_apart ? heads * problem.head_dim : problem.head_dim;
    default:
      return heads * rows * problem.head_dim;
  }
}

}  // namespace attune::space
