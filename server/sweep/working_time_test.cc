#include "server/sweep/working_time.h"

#include "gtest/gtest.h"

namespace attune::sweep {
namespace {

TEST(WorkingTime, LeavesOutWhatIsWaitedForJobsAhead) {
  absl::Duration now = absl::Seconds(100);
  WorkingTime time([&] { return now; });
  int told = 0;
  trials::Waiter waiter;
  waiter.moved = [&](const trials::QueuePlace&) { ++told; };
  const trials::Waiter counted = time.Counted(waiter);
  now += absl::Seconds(1);
  EXPECT_EQ(time.Elapsed(), absl::Seconds(1));
  counted.moved({"operations/1", "tune", 2});
  now += absl::Seconds(10);
  EXPECT_EQ(time.Elapsed(), absl::Seconds(1)) << "it waits now";
  counted.moved({"operations/1", "tune", 1});
  now += absl::Seconds(10);
  counted.moved({});
  now += absl::Seconds(2);
  EXPECT_EQ(time.Elapsed(), absl::Seconds(3));
  counted.moved({});
  EXPECT_EQ(time.Elapsed(), absl::Seconds(3));
  EXPECT_EQ(told, 4);
}

TEST(WorkingTime, NeedsNobodyElseToTell) {
  absl::Duration now;
  WorkingTime time([&] { return now; });
  time.Counted({}).moved({"operations/1", "tune", 1});
  now += absl::Seconds(5);
  EXPECT_EQ(time.Elapsed(), absl::ZeroDuration());
}

}  // namespace
}  // namespace attune::sweep
