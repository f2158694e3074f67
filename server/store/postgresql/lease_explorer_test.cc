// The orders of steps that the fake queue is put through exhaustively, as far as a database's speed lets one go.
#include "server/store/testing/lease_explorer.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/store/testing/queue_contract.h"

namespace attune::store {
namespace {

class ExploredQueues : public testing::Test {
 protected:
  void SetUp() override {
    const QueueImplementation implementation = QueueImplementations().front();
    if (!implementation.missing.empty()) GTEST_SKIP() << implementation.missing;
    absl::StatusOr<std::unique_ptr<OpenedQueue>> opened =
        implementation.open(directory_.path(), [this] { return now_; });
    ASSERT_TRUE(opened.ok()) << opened.status();
    opened_ = *std::move(opened);
  }

  // A job of its own in the one queue.
  class Explored : public ExploredQueue {
   public:
    Explored(OpenedQueue& opened, absl::Time& now, int number) : opened_(opened), now_(now), number_(number) {}
    Queue& queue() override { return opened_.queue(); }
    std::string name() override { return absl::StrCat("operations/", number_); }
    absl::Time now() override { return now_; }
    void Advance(absl::Duration time) override { now_ += time; }
    // Not built yet: the queue stands alone.
    absl::Status Write(const JobWrite& write, absl::FunctionRef<void()> make) override {
      return absl::UnimplementedError("no store");
    }

   private:
    OpenedQueue& opened_;
    absl::Time& now_;
    const int number_;
  };

  const TestDirectory directory_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  std::unique_ptr<OpenedQueue> opened_;
  int jobs_ = 0;
};

TEST_F(ExploredQueues, FollowTheModel) {
  const Exploration some = Explore([this] { return std::make_unique<Explored>(*opened_, now_, jobs_++); },
                                   {.most_steps = 4, .writes = false});
  EXPECT_EQ(some.violation, "");
  EXPECT_GT(some.states, 50U);
  RecordProperty("states", static_cast<int>(some.states));
}

}  // namespace
}  // namespace attune::store
