// The server's own rules on what `attune new-kernel` writes; tests/e2e/submit_test.py runs it.
#include "client/cli/starter_kernel.h"

#include "gtest/gtest.h"
#include "server/submit/package.h"

namespace attune::cli {
namespace {

TEST(StarterKernel, IsAGoodSubmissionForEachBackend) {
  for (const char* backend : {"opencl", "cuda"}) {
    const auto family = submit::FamilyOf(StarterKernel(backend), ATTUNE_SOURCE_DIR "/kernels_src");
    ASSERT_TRUE(family.ok()) << backend << ": " << family.status();
    EXPECT_EQ((*family)->manifest.backend(), backend[0] == 'c' ? v1::BACKEND_CUDA : v1::BACKEND_OPENCL);
    EXPECT_EQ((*family)->sources.size(), 1U);
  }
}

}  // namespace
}  // namespace attune::cli
