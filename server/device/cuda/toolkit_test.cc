#include "server/device/cuda/toolkit.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::device::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An empty directory, gone afterwards.
class ToolkitTest : public ::testing::Test {
 protected:
  ToolkitTest() : root_(std::filesystem::path(::testing::TempDir()) / "toolkit_test") {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~ToolkitTest() override { std::filesystem::remove_all(root_); }

  std::string Touch(const std::string& path) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "";
    return file.string();
  }
  std::string In(const std::string& path) { return (root_ / path).string(); }

  const std::filesystem::path root_;
};

TEST(ChooseVersion, TakesTheNewestWithoutADriver) {
  EXPECT_EQ(ChooseVersion({{12, 9}, {13, 0}, {12, 4}}, 0), 1);
  EXPECT_EQ(ChooseVersion({{12, 9}, {12, 10}}, 0), 1);
}

TEST(ChooseVersion, TakesTheNewestOfTheDriversMajorVersionOrOlder) {
  EXPECT_EQ(ChooseVersion({{13, 0}, {12, 4}, {12, 9}}, 12'020), 2);
  EXPECT_EQ(ChooseVersion({{13, 1}, {13, 0}, {12, 9}}, 13'000), 0);
  EXPECT_EQ(ChooseVersion({{12, 9}}, 13'000), 0);
}

TEST(ChooseVersion, TakesNoneThatIsTooNew) {
  EXPECT_EQ(ChooseVersion({{13, 0}}, 12'080), -1);
  EXPECT_EQ(ChooseVersion({}, 0), -1);
}

TEST_F(ToolkitTest, FindsTheHeadersBesideTheLibrary) {
  const std::string library = Touch("cuda-13.0/lib64/libnvrtc.so.13");
  Touch("cuda-13.0/include/cuda_fp16.h");
  Touch("cuda-12.4/include/cuda_fp16.h");
  ToolkitSearch search;
  search.roots = {In("cuda-12.4")};
  EXPECT_THAT(FindToolkitHeaders(search, library).value(), ElementsAre(In("cuda-13.0/include")));
}

TEST_F(ToolkitTest, FindsTheHeadersOfWheels) {
  const std::string library = Touch("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  Touch("nvidia/cuda_runtime/include/cuda_fp16.h");
  Touch("nvidia/cuda_nvcc/include/crt/mma.h");
  EXPECT_THAT(FindToolkitHeaders({}, library).value(),
              ElementsAre(In("nvidia/cuda_runtime/include"), In("nvidia/cuda_nvcc/include")));
}

TEST_F(ToolkitTest, FollowsTheLibrarysLinks) {
  Touch("cuda-13.0/targets/x86_64-linux/lib/libnvrtc.so.13");
  Touch("cuda-13.0/targets/x86_64-linux/include/cuda_fp16.h");
  std::filesystem::create_directories(root_ / "lib");
  std::filesystem::create_symlink(root_ / "cuda-13.0/targets/x86_64-linux/lib/libnvrtc.so.13",
                                  root_ / "lib/libnvrtc.so.13");
  EXPECT_THAT(FindToolkitHeaders({}, In("lib/libnvrtc.so.13")).value(),
              ElementsAre(In("cuda-13.0/targets/x86_64-linux/include")));
}

TEST_F(ToolkitTest, FallsBackOnTheToolkitRoots) {
  Touch("cuda/include/cuda_fp16.h");
  ToolkitSearch search;
  search.roots = {In("absent"), In("cuda")};
  EXPECT_THAT(FindToolkitHeaders(search, Touch("lib/libnvrtc.so.12")).value(), ElementsAre(In("cuda/include")));
}

TEST_F(ToolkitTest, TakesTheNamedIncludeDirectoryAndNoOther) {
  const std::string library = Touch("cuda/lib64/libnvrtc.so.13");
  Touch("cuda/include/cuda_fp16.h");
  ToolkitSearch search;
  search.include = In("mine");
  const absl::Status status = FindToolkitHeaders(search, library).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuda_fp16.h is not in " + In("mine")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("ATTUNE_CUDA_INCLUDE"));
}

TEST_F(ToolkitTest, SaysThatTheNamedLibraryIsMissing) {
  ToolkitSearch search;
  search.nvrtc = In("libnvrtc.so.99");
  const absl::Status status = FindNvrtc(search).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("libnvrtc.so.99"));
}

TEST_F(ToolkitTest, RefusesALibraryThatIsNotNvrtc) {
  ToolkitSearch search;
  search.nvrtc = "libc.so.6";
  EXPECT_THAT(std::string(FindNvrtc(search).status().message()), HasSubstr("has no nvrtcVersion"));
}

TEST_F(ToolkitTest, RefusesAnNvrtcThatIsTooNewForTheDriver) {
  ToolkitSearch search = ToolkitSearch::FromEnvironment(0);
  if (!FindNvrtc(search).ok()) GTEST_SKIP() << FindNvrtc(search).status().message();
  search.driver_version = 9'020;
  const absl::Status status = FindNvrtc(search).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the driver loads code of CUDA 9.2 and older"));
}

}  // namespace
}  // namespace attune::device::cuda
