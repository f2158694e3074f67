#include "server/jobs/last_sweep.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/proto_time.h"
#include "server/store/testing/fake_store.h"

namespace attune::jobs {
namespace {

class LastSweepTest : public ::testing::Test {
 protected:
  // A job that ended at `second`.
  void Ended(store::JobKind kind, v1::Operation::State state, int second) {
    store::Job job;
    job.kind = kind;
    job.name = absl::StrCat("operations/", second);
    job.operation.set_name(job.name);
    ASSERT_TRUE(store_.queue().Create(job, {}).ok());
    const auto leased = store_.queue().Lease(job.name, "host", absl::Minutes(1));
    ASSERT_TRUE(leased.ok() && leased->has_value());
    job.operation.set_state(state);
    job.operation.set_done(true);
    if (kind == store::JobKind::kSweep) job.operation.mutable_sweep();
    SetTimestamp(absl::FromUnixSeconds(second), job.operation.mutable_end_time());
    ASSERT_TRUE(store_.queue().Finish({job.name, (*leased)->epoch}, job.operation).ok());
  }
  std::optional<absl::Time> Last() { return LastSweep(store_.queue()).value(); }

  store::FakeStore store_;
};

TEST_F(LastSweepTest, ThereIsNoneAtFirst) { EXPECT_EQ(Last(), std::nullopt); }

TEST_F(LastSweepTest, IsTheNewestThatSucceeded) {
  Ended(store::JobKind::kSweep, v1::Operation::STATE_SUCCEEDED, 100);
  Ended(store::JobKind::kSweep, v1::Operation::STATE_SUCCEEDED, 200);
  Ended(store::JobKind::kSweep, v1::Operation::STATE_FAILED, 300);
  Ended(store::JobKind::kTune, v1::Operation::STATE_SUCCEEDED, 400);
  EXPECT_EQ(Last(), absl::FromUnixSeconds(200));
}

TEST_F(LastSweepTest, IsFoundBehindPagesOfOthers) {
  Ended(store::JobKind::kSweep, v1::Operation::STATE_SUCCEEDED, 1);
  for (int second = 2; second < 200; ++second) {
    Ended(second % 2 == 0 ? store::JobKind::kTune : store::JobKind::kSweep, v1::Operation::STATE_FAILED, second);
  }
  EXPECT_EQ(Last(), absl::FromUnixSeconds(1));
}

}  // namespace
}  // namespace attune::jobs
