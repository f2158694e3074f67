#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/device.h"

namespace attune::device {
namespace {

using ::testing::HasSubstr;

v1::KernelArg::Buffer Argument(v1::BufferRole role, int scratch = 0) {
  v1::KernelArg::Buffer argument;
  argument.set_role(role);
  argument.set_scratch(scratch);
  return argument;
}

TEST(Bindings, EveryRoleHasAViewOfItsOwn) {
  Bindings bindings;
  BufferView* const views[] = {&bindings.q,          &bindings.k,          &bindings.v,
                               &bindings.o,          &bindings.lse,        nullptr,
                               &bindings.sinks,      &bindings.q_bounds,   &bindings.kv_bounds,
                               &bindings.kv_lengths, &bindings.page_table, &bindings.k_scale,
                               &bindings.v_scale};
  for (int role = v1::BUFFER_ROLE_Q; role <= v1::BufferRole_MAX; ++role) {
    if (role != v1::BUFFER_ROLE_SCRATCH) views[role - v1::BUFFER_ROLE_Q]->size = static_cast<size_t>(role);
  }
  for (int role = v1::BUFFER_ROLE_Q; role <= v1::BufferRole_MAX; ++role) {
    if (role == v1::BUFFER_ROLE_SCRATCH) continue;
    const absl::StatusOr<BufferView> view = ViewOf(Argument(static_cast<v1::BufferRole>(role)), bindings);
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(view->size, static_cast<size_t>(role));
  }
}

TEST(Bindings, ScratchGoesByItsIndex) {
  Bindings bindings;
  bindings.scratch.resize(2);
  bindings.scratch[1].size = 7;
  EXPECT_EQ(ViewOf(Argument(v1::BUFFER_ROLE_SCRATCH, 1), bindings)->size, 7);
  EXPECT_THAT(std::string(ViewOf(Argument(v1::BUFFER_ROLE_SCRATCH, 2), bindings).status().message()),
              HasSubstr("scratch is 2; 2 buffers are bound"));
}

TEST(Bindings, AnUnknownRoleIsRefused) {
  EXPECT_THAT(std::string(ViewOf(Argument(v1::BUFFER_ROLE_UNSPECIFIED), {}).status().message()),
              HasSubstr("role is 0; allowed:"));
}

}  // namespace
}  // namespace attune::device
