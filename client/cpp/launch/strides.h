// Launches that differ from their problem's: tensors that lie otherwise than in its layout (slices, views of packed
// tensors, pages of keys and values in one), and another softmax scale.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_STRIDES_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_STRIDES_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "attune/v1/launch.pb.h"
#include "proto/attune/problem.h"

namespace attune::launch {

// Of one tensor, in elements, whatever the order of its dimensions; those of a row are contiguous. A dimension that the
// tensor has not, or with one entry, may have any.
struct Spacing {
  int64_t batch = 0;  // from one sequence to the next; of K and V with pages: from page to page; not with varlen
  int64_t head = 0;
  int64_t row = 0;  // from one token to the next

  friend bool operator==(const Spacing&, const Spacing&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Spacing& s) {
    return H::combine(std::move(h), s.batch, s.head, s.row);
  }
};

struct Placement {
  Spacing q, k, v, o;
  // Of the scales of 8-bit K and V, which have no rows: {heads_kv, 1} in the problem's own layout, {0, 1} one a KV
  // head, {0, 0} one for all.
  Spacing k_scale = {}, v_scale = {};
  double softmax_scale = 0;  // 0: 1 / sqrt(head_dim)

  friend bool operator==(const Placement&, const Placement&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Placement& p) {
    return H::combine(std::move(h), p.q, p.k, p.v, p.o, p.k_scale, p.v_scale, p.softmax_scale);
  }
};

// That of the problem's own layout.
Placement OwnPlacement(const Problem& problem);

// `recipe` for tensors that lie so. InvalidArgument names tensor and stride: one that the kernel reads in the problem's
// layout alone, or that is not a multiple of 16 bytes (of scales any), negative, or too large; or the softmax scale:
// one that is not above 0 or beyond what the kernel computes.
absl::StatusOr<v1::LaunchRecipe> PlacedRecipe(v1::LaunchRecipe recipe, const Problem& problem,
                                              const Placement& placement);

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_STRIDES_H_
