// Tensors that lie otherwise than in their problem's layout: slices, views of packed tensors, pages of keys and values
// in one.
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

  friend bool operator==(const Placement&, const Placement&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Placement& p) {
    return H::combine(std::move(h), p.q, p.k, p.v, p.o);
  }
};

// That of the problem's own layout.
Placement OwnPlacement(const Problem& problem);

// `recipe` for tensors that lie so. InvalidArgument names tensor and stride: one that the kernel reads in the problem's
// layout alone, or that is not a multiple of 8, negative, or too large.
absl::StatusOr<v1::LaunchRecipe> PlacedRecipe(v1::LaunchRecipe recipe, const Problem& problem,
                                              const Placement& placement);

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_STRIDES_H_
