// The families that ship, as data: they load, their spaces add up, and nothing is offered that a device cannot hold.
#include <algorithm>

#include "gtest/gtest.h"
#include "server/base/device_profile.h"
#include "server/space/space.h"

namespace attune::space {
namespace {

class Kernels : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  static std::vector<std::shared_ptr<const Family>> Families() {
    auto families = LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
    EXPECT_TRUE(families.ok()) << families.status();
    return families.ok() ? *families : std::vector<std::shared_ptr<const Family>>();
  }
};

TEST_P(Kernels, SpacesAddUpAndFitTheDevice) {
  const Problem problem = *ParseProblem(std::get<0>(GetParam()));
  const v1::Device device = *DeviceProfile(std::get<1>(GetParam()));
  int64_t variants = 0;
  for (const auto& family : Families()) {
    if (family->manifest.backend() != v1::BACKEND_CUDA || family->manifest.role() > family::v1::ROLE_SEARCH) continue;
    const auto enumeration = Enumerate(family, problem, device);
    ASSERT_TRUE(enumeration.ok()) << enumeration.status();
    int64_t removed = 0;
    for (const Removed& entry : enumeration->removed) {
      removed += entry.count;
      EXPECT_FALSE(entry.reason.empty()) << family->name() << ": " << entry.constraint;
    }
    EXPECT_EQ(removed + static_cast<int64_t>(enumeration->variants.size()), enumeration->product) << family->name();
    variants += static_cast<int64_t>(enumeration->variants.size());
    for (const Variant& variant : enumeration->variants) {
      const auto recipe = RecipeFor(variant, problem, device);
      ASSERT_TRUE(recipe.ok()) << recipe.status();
      EXPECT_LE(recipe->launches(recipe->main_launch()).dynamic_shared_bytes(), device.shared_bytes_per_block())
          << variant.ToText();
    }
  }
  EXPECT_GT(variants, 100);
}

INSTANTIATE_TEST_SUITE_P(All, Kernels,
                         ::testing::Combine(::testing::Values("b1.h1.q128.d64.f16", "b2.h8.q512.d64.bf16.causal",
                                                              "b1.h32.kvh8.q1.kv8192.d128.bf16",
                                                              "b1.h2.q113.kv203.d256.f16.causal-br.lse"),
                                            ::testing::Values("l4", "h200")));

TEST(KernelRoles, EveryBackEndHasAReferenceAndAFloor) {
  const auto families = LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
  ASSERT_TRUE(families.ok()) << families.status();
  for (const v1::Backend backend : {v1::BACKEND_CUDA, v1::BACKEND_OPENCL}) {
    for (const family::v1::Role role : {family::v1::ROLE_REFERENCE, family::v1::ROLE_FLOOR, family::v1::ROLE_SEARCH}) {
      EXPECT_TRUE(std::any_of(
          families->begin(), families->end(),
          [&](const auto& family) { return family->manifest.backend() == backend && family->manifest.role() == role; }))
          << Backend_Name(backend) << " " << Role_Name(role);
    }
  }
}

}  // namespace
}  // namespace attune::space
