// The launcher on the recipes that it shares with the worker and with the Python client.
#include <cstring>

#include "client/cpp/launch/code.h"
#include "gtest/gtest.h"
#include "server/base/sha256.h"
#include "tests/golden/recipes.h"

namespace attune::launch {
namespace {

using device::cuda::testing::Launched;

// Those of the tensors that the problem has.
Tensors TensorsIn(const nlohmann::json& all, const Problem& problem) {
  constexpr const char* kRoles[kTensors] = {"Q",        "K",         "V",          "O",          "LSE",     "SINKS",
                                            "Q_BOUNDS", "KV_BOUNDS", "KV_LENGTHS", "PAGE_TABLE", "K_SCALE", "V_SCALE"};
  Address addresses[kTensors];
  for (int i = 0; i < kTensors; ++i) {
    addresses[i] = (TensorsOf(problem) >> i & 1) != 0 ? all[kRoles[i]].get<Address>() : 0;
  }
  Tensors tensors;
  std::memcpy(&tensors, addresses, sizeof tensors);
  return tensors;
}

class GoldenRecipes : public ::testing::TestWithParam<bool> {};

TEST_P(GoldenRecipes, AreLaunchedAsTheyAreWritten) {
  device::cuda::testing::Reset();
  device::cuda::testing::SetMapsBeginWithAddress(GetParam());
  const auto gpu = Gpu::Open(0);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const CurrentContext context(**gpu);
  Code code(*gpu);
  const nlohmann::json golden = Golden("recipes");
  for (const nlohmann::json& vector : golden["vectors"]) {
    auto answer = std::make_shared<v1::GetBestResponse>();
    *answer->mutable_recipe() = RecipeOf(vector);
    answer->set_artifact(ModuleOf(answer->recipe()));
    answer->set_artifact_sha256(Sha256(answer->artifact()));
    const Problem problem = *ParseProblem(vector["problem"].get<std::string>());
    const auto plan = code.PlanOf(answer, problem);
    ASSERT_TRUE(plan.ok()) << vector["name"] << plan.status();
    const absl::Status status = (*plan)->EnqueueInContext(TensorsIn(golden["tensors"], problem), nullptr,
                                                          vector.value("zeroed", 0), vector.value("other", 0));
    ASSERT_TRUE(status.ok()) << vector["name"] << status;
    std::vector<std::string> launched;
    for (const Launched& launch : device::cuda::testing::TakeLaunched()) launched.push_back(AsText(launch));
    EXPECT_EQ(launched, ExpectedOf(vector)) << vector["name"];
  }
}

INSTANTIATE_TEST_SUITE_P(MapsBeginWithTheirAddressOrNot, GoldenRecipes, ::testing::Bool());

}  // namespace
}  // namespace attune::launch
