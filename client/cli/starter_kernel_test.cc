// The server's own rules on what `attune new-kernel` writes; tests/e2e/submit_test.py runs the OpenCL kernel,
// tests/kernels/run_starter the CUDA ones on the CPU, tests/gpu/agent.py these on a GPU.
#include "client/cli/starter_kernel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/submit/package.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;

TEST(StarterKernel, IsAGoodSubmissionAtEachStep) {
  for (const char* backend : {"opencl", "cuda"}) {
    for (const StarterStep& step : StarterSteps(backend)) {
      const auto files = FilesOf(step);
      ASSERT_GE(files.size(), 2) << backend << ": " << step.technique;
      const auto family = submit::FamilyOf(files, ATTUNE_SOURCE_DIR "/kernels_src");
      ASSERT_TRUE(family.ok()) << backend << ", " << step.technique << ": " << family.status();
      EXPECT_EQ((*family)->manifest.backend(), backend[0] == 'c' ? v1::BACKEND_CUDA : v1::BACKEND_OPENCL);
      EXPECT_EQ((*family)->sources.size(), static_cast<size_t>((*family)->manifest.sources_size()))
          << "sources that nothing includes, or includes that are not named";
    }
  }
}

TEST(StarterKernel, EachStepOfCudaSaysItsTechnique) {
  const std::vector<StarterStep>& steps = StarterSteps("cuda");
  ASSERT_EQ(steps.size(), 4U);
  for (size_t i = 0; i < steps.size(); ++i) {
    std::string text;
    for (const v1::SourceFile& file : FilesOf(steps[i])) {
      if (file.path() == "attention.cu") text = file.text();
    }
    EXPECT_THAT(text, HasSubstr("tep " + std::to_string(i + 1) + " of 4"));
    EXPECT_THAT(text, HasSubstr(std::string(steps[i].technique)));
  }
}

}  // namespace
}  // namespace attune::cli
