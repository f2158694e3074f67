#include "server/jobs/part_looks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/store/testing/fake_store.h"

namespace attune::jobs {
namespace {

class PartLooksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store::Job sweep;
    sweep.name = "operations/1";
    sweep.operation.set_name(sweep.name);
    ASSERT_TRUE(store_.queue().Create(sweep, {}).ok());
    for (const std::string& name : names_) {
      store::Job part;
      part.name = name;
      part.parent = sweep.name;
      part.device_class = "l4";
      part.operation.set_name(name);
      part.operation.set_parent(sweep.name);
      ASSERT_TRUE(store_.queue().Create(part, {}).ok());
    }
  }

  std::vector<std::string> MessagesAt(PartLooks& looks) {
    const absl::StatusOr<std::vector<v1::Operation>> parts = looks.At(names_);
    EXPECT_TRUE(parts.ok()) << parts.status();
    std::vector<std::string> messages;
    for (const v1::Operation& part : *parts) {
      messages.push_back(part.done() ? "done" : part.progress().message());
    }
    return messages;
  }
  static v1::Operation Saying(const std::string& name, const std::string& message) {
    v1::Operation operation;
    operation.set_name(name);
    operation.set_parent("operations/1");
    operation.mutable_progress()->set_message(message);
    return operation;
  }
  // As another host does.
  void Say(const std::string& name, const std::string& message) {
    const auto leased = store_.queue().Lease(name, "other", absl::Minutes(1));
    ASSERT_TRUE(store_.queue().Update({name, (*leased)->epoch}, Saying(name, message)).ok());
  }
  void End(const std::string& name) {
    v1::Operation ended = Saying(name, "");
    ended.set_done(true);
    const auto leased = store_.queue().Lease(name, "other", absl::Minutes(1));
    ASSERT_TRUE(store_.queue().Finish({name, (*leased)->epoch}, ended).ok());
  }

  const std::vector<std::string> names_ = {"operations/1.0", "operations/1.1"};
  store::FakeStore store_;
  Operations operations_{&store_.queue()};
  absl::Duration now_;
};

TEST_F(PartLooksTest, WhatOthersHaveIsReadOnceAnInterval) {
  PartLooks looks(operations_, "operations/1", absl::Seconds(1), [this] { return now_; });
  EXPECT_THAT(MessagesAt(looks), ::testing::ElementsAre("", ""));
  Say(names_[1], "begun");
  now_ += absl::Milliseconds(999);
  EXPECT_THAT(MessagesAt(looks), ::testing::ElementsAre("", ""));
  now_ += absl::Milliseconds(1);
  EXPECT_THAT(MessagesAt(looks), ::testing::ElementsAre("", "begun"));
  End(names_[0]);
  now_ += absl::Seconds(1);
  EXPECT_THAT(MessagesAt(looks), ::testing::ElementsAre("done", "begun"));
}

TEST_F(PartLooksTest, WhatRunsHereIsAsItIsNowAndItsEndReadAtOnce) {
  PartLooks looks(operations_, "operations/1", absl::Seconds(1), [this] { return now_; });
  EXPECT_THAT(MessagesAt(looks), ::testing::ElementsAre("", ""));
  const auto live = operations_.Adopt(*store_.queue().Get(names_[0]), "");
  ASSERT_NE(live, nullptr);
  live->Update([](v1::Operation& operation) { operation.mutable_progress()->set_message("here"); });
  EXPECT_THAT(MessagesAt(looks), ::testing::ElementsAre("here", ""));
  ASSERT_TRUE(live->Withdraw());
  operations_.Finish(live, v1::Operation::STATE_SUCCEEDED, absl::OkStatus(),
                     [](v1::Operation&) { return absl::OkStatus(); });
  EXPECT_THAT(MessagesAt(looks), ::testing::ElementsAre("done", ""));
}

TEST_F(PartLooksTest, WithoutAnIntervalAllAreReadEachTime) {
  PartLooks looks(operations_, "operations/1", absl::ZeroDuration());
  EXPECT_THAT(MessagesAt(looks), ::testing::ElementsAre("", ""));
  Say(names_[1], "begun");
  EXPECT_THAT(MessagesAt(looks), ::testing::ElementsAre("", "begun"));
}

}  // namespace
}  // namespace attune::jobs
