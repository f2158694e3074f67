// The vectors of recipes.json, for the launchers in C++. A source that includes this is one of its attune_test's
// READS_SOURCES.
#ifndef ATTUNE_TESTS_GOLDEN_RECIPES_H_
#define ATTUNE_TESTS_GOLDEN_RECIPES_H_

#include <google/protobuf/util/json_util.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attune/v1/launch.pb.h"
#include "gtest/gtest.h"
#include "server/device/cuda/testing/fake_cuda.h"
#include "tests/golden/golden.h"

namespace attune {

inline v1::LaunchRecipe RecipeOf(const nlohmann::json& vector) {
  v1::LaunchRecipe recipe;
  const auto status = google::protobuf::util::JsonStringToMessage(vector["recipe"].dump(), &recipe);
  EXPECT_TRUE(status.ok()) << vector["name"] << ": " << status.ToString();
  return recipe;
}

// A module of the fake driver with the kernels of a recipe.
inline std::string ModuleOf(const v1::LaunchRecipe& recipe) {
  std::string module = device::cuda::testing::kFakeModule;
  for (const v1::KernelLaunch& launch : recipe.launches()) {
    absl::StrAppend(&module, launch.entry());
    for (const v1::KernelArg& arg : launch.args()) {
      absl::StrAppend(&module, " ", arg.has_tensor_map() ? 128 : arg.has_i32() || arg.has_f32() ? 4 : 8);
    }
    absl::StrAppend(&module, "\n");
  }
  return module;
}

// A launch as text, the driver's bytes in hexadecimal.
inline std::string AsText(const device::cuda::testing::Launched& launched) {
  std::vector<std::string> parameters;
  for (const std::string& bytes : launched.parameters) parameters.push_back(absl::BytesToHexString(bytes));
  return absl::StrCat(launched.entry, " ", absl::StrJoin(launched.grid, "x"), " ", absl::StrJoin(launched.block, "x"),
                      " ", launched.dynamic_shared_bytes, " ",
                      launched.has_cluster ? absl::StrJoin(launched.cluster, "x") : "no cluster",
                      launched.overlaps_previous ? " overlaps " : " ", absl::StrJoin(parameters, " "));
}

// The launches that a vector expects, in the same form.
inline std::vector<std::string> ExpectedOf(const nlohmann::json& vector) {
  std::vector<std::string> expected;
  for (const nlohmann::json& launch : vector["launches"]) {
    device::cuda::testing::Launched launched = {};
    launched.entry = launch["entry"];
    for (int i = 0; i < 3; ++i) launched.grid[i] = launch["grid"][i];
    for (int i = 0; i < 3; ++i) launched.block[i] = launch["block"][i];
    launched.dynamic_shared_bytes = launch["dynamic_shared_bytes"];
    launched.has_cluster = !launch["cluster"].is_null();
    for (int i = 0; i < 3 && launched.has_cluster; ++i) launched.cluster[i] = launch["cluster"][i];
    launched.overlaps_previous = launch["overlaps_previous"];
    for (const nlohmann::json& parameter : launch["parameters"]) {
      launched.parameters.push_back(parameter.is_null() ? std::string(128, '\0')
                                    : parameter.is_string()
                                        ? absl::HexStringToBytes(parameter.get<std::string>())
                                        : device::cuda::testing::EncodedAs(parameter["map"], parameter["box"]));
    }
    expected.push_back(AsText(launched));
  }
  return expected;
}

}  // namespace attune

#endif  // ATTUNE_TESTS_GOLDEN_RECIPES_H_
