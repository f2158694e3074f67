// Launch recipes written out by hand, for kernels whose manifests are not what is tested.
#ifndef ATTUNE_TESTS_OPENCL_RECIPES_H_
#define ATTUNE_TESTS_OPENCL_RECIPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "attune/v1/device.pb.h"
#include "attune/v1/launch.pb.h"
#include "proto/attune/problem.h"

namespace attune::testing {

// A variant of kernels_src/attention_opencl.
struct Attention {
  int64_t block_m = 32, block_n = 32, threads = 8, lanes = 1, vec = 16;
  bool local_kv = true;
  int64_t unroll = 1, kv_splits = 1, groups_per_unit = 0;

  std::vector<std::string> Options(const Problem& problem) const;
  v1::LaunchRecipe Recipe(const Problem& problem, const v1::Device& device) const;
};

std::vector<std::string> ReferenceOptions(const Problem& problem, bool plain);
v1::LaunchRecipe ReferenceRecipe(const Problem& problem);

// Of every family in tests/families: a work-item a row, `threads` to a work-group.
v1::LaunchRecipe RowRecipe(const Problem& problem, int64_t threads);

}  // namespace attune::testing

#endif  // ATTUNE_TESTS_OPENCL_RECIPES_H_
