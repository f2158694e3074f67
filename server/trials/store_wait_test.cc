#include "server/trials/store_wait.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "server/trials/testing/lone_job.h"

namespace attune::trials {
namespace {

TEST(StoreWait, AWriteIsRepeatedUntilTheStoreIsBackUnderOneId) {
  LoneJob lone;
  lone.job.epoch = 7;
  std::vector<int64_t> ids;
  const absl::Status written = WriteFor(lone.job, [&](const store::JobWrite& write) {
    EXPECT_EQ(write.fence.job, "operations/1");
    EXPECT_EQ(write.fence.epoch, 7);
    ids.push_back(write.id);
    return ids.size() < 3 ? absl::UnavailableError("the disk is gone") : absl::OkStatus();
  });
  EXPECT_TRUE(written.ok()) << written;
  ASSERT_EQ(ids.size(), 3);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[0], ids[2]);
  int64_t other = 0;
  EXPECT_TRUE(WriteFor(lone.job, [&](const store::JobWrite& write) {
                other = write.id;
                return absl::OkStatus();
              }).ok());
  EXPECT_NE(other, ids[0]);
}

TEST(StoreWait, WhatIsWrongWithTheWriteIsNotRepeated) {
  LoneJob lone;
  for (const absl::Status& wrong : {absl::InvalidArgumentError("no problem"), absl::AbortedError("stale"),
                                    absl::DataLossError("damaged"), absl::NotFoundError("no such job")}) {
    int times = 0;
    EXPECT_EQ(WriteFor(lone.job,
                       [&](const store::JobWrite&) {
                         ++times;
                         return wrong;
                       }),
              wrong);
    EXPECT_EQ(times, 1);
  }
}

TEST(StoreWait, AReadIsRepeatedUntilTheStoreIsBack) {
  LoneJob lone;
  int times = 0;
  const absl::StatusOr<int> read = ReadFor(lone.job, [&]() -> absl::StatusOr<int> {
    if (++times < 3) return absl::UnavailableError("the disk is gone");
    return 7;
  });
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, 7);
  EXPECT_EQ(times, 3);
}

TEST(StoreWait, WhatAReadHasFoundIsNotReadAgain) {
  LoneJob lone;
  for (const absl::Status& found :
       {absl::NotFoundError("no such trial"), absl::FailedPreconditionError("no family"),
        absl::ResourceExhaustedError("too many variants"), absl::DataLossError("damaged")}) {
    int times = 0;
    EXPECT_EQ(ReadFor(lone.job,
                      [&] {
                        ++times;
                        return found;
                      }),
              found);
    EXPECT_EQ(times, 1);
  }
}

TEST(StoreWait, ProgressSaysWhatIsWaitedForAndTheStopEndsIt) {
  LoneJob lone;
  lone.SetPhase(v1::OperationProgress::PHASE_TRIALS, "compiling");
  absl::Status written;
  std::thread writer([&] {
    written = WriteFor(lone.job, [](const store::JobWrite&) { return absl::ResourceExhaustedError("disk full"); });
  });
  lone.AwaitMessage("waiting for the store: disk full");
  lone.stop.request_stop();
  writer.join();
  EXPECT_TRUE(absl::IsResourceExhausted(written));
  lone.AwaitMessage("compiling");
}

TEST(StoreWait, OfTwoWaitsTheMessageIsTheFirstsAndWhatWasBeforeComesBack) {
  LoneJob lone;
  lone.SetPhase(v1::OperationProgress::PHASE_TRIALS, "compiling");
  std::optional<StoreWait> first(std::in_place, "operations/1", lone.stop.get_token(), lone);
  std::optional<StoreWait> second(std::in_place, "operations/1", lone.stop.get_token(), lone);
  EXPECT_TRUE(first->Again(absl::UnavailableError("the disk is gone")));
  EXPECT_TRUE(second->Again(absl::PermissionDeniedError("read-only file system")));
  lone.AwaitMessage("waiting for the store: the disk is gone");
  first.reset();
  lone.AwaitMessage("compiling");
  second.reset();
  lone.AwaitMessage("compiling");
}

TEST(StoreWait, AMessageThatCameMeanwhileStays) {
  LoneJob lone;
  {
    StoreWait wait("operations/1", lone.stop.get_token(), lone);
    EXPECT_TRUE(wait.Again(absl::UnavailableError("the disk is gone")));
    lone.SetPhase(v1::OperationProgress::PHASE_PLAY_OFF, "the last few");
  }
  lone.AwaitMessage("the last few");
}

}  // namespace
}  // namespace attune::trials
