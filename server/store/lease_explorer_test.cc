#include "server/store/testing/lease_explorer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/testing/fake_queue.h"

namespace attune::store {
namespace {

using testing::HasSubstr;

class ExploredFake : public ExploredQueue {
 public:
  Queue& queue() override { return queue_; }
  std::string name() override { return "operations/a"; }
  absl::Time now() override { return now_; }
  void Advance(absl::Duration time) override { now_ += time; }
  absl::Status Write(const JobWrite& write, absl::FunctionRef<void()> make) override {
    return fake()
        .Once(write,
              [&]() -> absl::StatusOr<std::string> {
                make();
                return "trials/1";
              })
        .status();
  }

 protected:
  // For queues that are wrong in one thing.
  class Wrapped : public Queue {
   public:
    explicit Wrapped(FakeQueue& queue) : queue_(queue) {}
    absl::StatusOr<Job> Create(const Job& job, const JoinTerms& terms) override { return queue_.Create(job, terms); }
    absl::Status Identify(absl::string_view name, absl::string_view identity) override {
      return queue_.Identify(name, identity);
    }
    absl::StatusOr<std::optional<Job>> Lease(absl::string_view name, absl::string_view holder,
                                             absl::Duration duration) override {
      return queue_.Lease(name, holder, duration);
    }
    absl::StatusOr<Job> Renew(const Fence& fence, absl::Duration duration) override {
      return queue_.Renew(fence, duration);
    }
    absl::StatusOr<std::vector<LeasedJob>> RenewAll(absl::string_view holder, absl::Duration duration) override {
      return queue_.RenewAll(holder, duration);
    }
    absl::StatusOr<std::vector<LeasedJob>> Held() override { return queue_.Held(); }
    absl::Status Update(const Fence& fence, const v1::Operation& operation) override {
      return queue_.Update(fence, operation);
    }
    absl::Status Finish(const Fence& fence, const v1::Operation& operation) override {
      return queue_.Finish(fence, operation);
    }
    absl::Status Requeue(const Fence& fence) override { return queue_.Requeue(fence); }
    absl::StatusOr<Job> Cancel(absl::string_view name) override { return queue_.Cancel(name); }
    absl::StatusOr<Job> Get(absl::string_view name) override { return queue_.Get(name); }
    absl::StatusOr<std::vector<std::string>> Leasable(absl::string_view holder) override {
      return queue_.Leasable(holder);
    }
    absl::StatusOr<Page<v1::Operation>> List(const JobFilter& filter, int page_size,
                                             absl::string_view page_token) override {
      return queue_.List(filter, page_size, page_token);
    }

   protected:
    Fence Current(const Fence& fence) { return {fence.job, queue_.Get(fence.job)->epoch}; }

    FakeQueue& queue_;
  };

  FakeQueue& fake() { return queue_; }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);

 private:
  FakeQueue queue_{[this] { return now_; }};
};

template <typename Wrong>
class ExploredWrong : public ExploredFake {
 public:
  Queue& queue() override { return wrong_; }

 private:
  Wrong wrong_{fake(), now_};
};

template <typename Explored>
Exploration ExploreAll() {
  return Explore([] { return std::make_unique<Explored>(); }, {});
}

template <typename Wrong>
std::string Found() {
  return ExploreAll<ExploredWrong<Wrong>>().violation;
}

// What is planted, each in a queue that is right otherwise.
class Planted : public ExploredFake {
 public:
  class Base : public Wrapped {
   public:
    Base(FakeQueue& queue, absl::Time& now) : Wrapped(queue), now_(now) {}

   protected:
    absl::Time& now_;
  };

  struct UnfencedFinish : Base {
    using Base::Base;
    absl::Status Finish(const Fence& fence, const v1::Operation& operation) override {
      return queue_.Finish(Current(fence), operation);
    }
  };
  struct UnfencedUpdate : Base {
    using Base::Base;
    absl::Status Update(const Fence& fence, const v1::Operation& operation) override {
      return queue_.Update(Current(fence), operation);
    }
  };
  struct UnfencedRenewal : Base {
    using Base::Base;
    absl::StatusOr<Job> Renew(const Fence& fence, absl::Duration duration) override {
      return queue_.Renew(Current(fence), duration);
    }
  };
  struct UnfencedRequeue : Base {
    using Base::Base;
    absl::Status Requeue(const Fence& fence) override { return queue_.Requeue(Current(fence)); }
  };
  struct EarlyLease : Base {
    using Base::Base;
    absl::StatusOr<std::optional<Job>> Lease(absl::string_view name, absl::string_view holder,
                                             absl::Duration duration) override {
      now_ += absl::Seconds(1);
      absl::StatusOr<std::optional<Job>> leased = queue_.Lease(name, holder, duration - absl::Seconds(1));
      now_ -= absl::Seconds(1);
      return leased;
    }
  };
  // All leases have the epoch 1.
  struct EpochNotRaised : Base {
    using Base::Base;
    absl::StatusOr<std::optional<Job>> Lease(absl::string_view name, absl::string_view holder,
                                             absl::Duration duration) override {
      absl::StatusOr<std::optional<Job>> leased = queue_.Lease(name, holder, duration);
      if (leased.ok() && leased->has_value()) (*leased)->epoch = 1;
      return leased;
    }
    absl::Status Update(const Fence& fence, const v1::Operation& operation) override {
      return queue_.Update(Current(fence), operation);
    }
    absl::Status Finish(const Fence& fence, const v1::Operation& operation) override {
      return queue_.Finish(Current(fence), operation);
    }
  };
  // A renewal that says yes and keeps nothing.
  struct ForgottenRenewal : Base {
    using Base::Base;
    absl::StatusOr<Job> Renew(const Fence& fence, absl::Duration duration) override {
      const absl::Duration left = std::max(absl::ZeroDuration(), queue_.Get(fence.job)->leased_until - now_);
      return queue_.Renew(fence, left);
    }
  };
  // Refuses what came late, but in time: nobody has taken the job.
  struct StrictUpdate : Base {
    using Base::Base;
    absl::Status Update(const Fence& fence, const v1::Operation& operation) override {
      const Job job = *queue_.Get(fence.job);
      if (job.leased_until <= now_) return StaleError(fence, job);
      return queue_.Update(fence, operation);
    }
  };
  // A repeated end, whose first answer was lost, is refused.
  struct FinishOnce : Base {
    using Base::Base;
    absl::Status Finish(const Fence& fence, const v1::Operation& operation) override {
      const Job job = *queue_.Get(fence.job);
      if (job.operation.done()) return StaleError(fence, job);
      return queue_.Finish(fence, operation);
    }
  };
};

class RepeatedWrite : public ExploredFake {
 public:
  absl::Status Write(const JobWrite& write, absl::FunctionRef<void()> make) override {
    return ExploredFake::Write(NewWrite(write.fence), make);
  }
};

TEST(LeaseExplorerTest, FindsNothingInTheQueue) {
  const Exploration all = ExploreAll<ExploredFake>();
  EXPECT_EQ(all.violation, "");
  EXPECT_TRUE(all.complete);
  EXPECT_GT(all.states, 1000U);
  RecordProperty("states", static_cast<int>(all.states));
  RecordProperty("transitions", static_cast<int>(all.transitions));
}

TEST(LeaseExplorerTest, FindsAnEndWithoutFence) {
  EXPECT_THAT(Found<Planted::UnfencedFinish>(), HasSubstr("taken from one who does not hold it"));
}

TEST(LeaseExplorerTest, FindsAnUpdateWithoutFence) {
  EXPECT_THAT(Found<Planted::UnfencedUpdate>(), HasSubstr("taken from one who does not hold it"));
}

TEST(LeaseExplorerTest, FindsARenewalWithoutFence) {
  EXPECT_THAT(Found<Planted::UnfencedRenewal>(), HasSubstr("taken from one who does not hold it"));
}

TEST(LeaseExplorerTest, FindsAJobGivenBackByAnother) {
  EXPECT_THAT(Found<Planted::UnfencedRequeue>(), HasSubstr("taken from one who does not hold it"));
}

TEST(LeaseExplorerTest, FindsALeaseTakenBeforeItExpired) {
  EXPECT_THAT(Found<Planted::EarlyLease>(), HasSubstr("although another holds it"));
}

TEST(LeaseExplorerTest, FindsAnEpochThatWasNotRaised) {
  EXPECT_THAT(Found<Planted::EpochNotRaised>(), HasSubstr("the epoch is not greater than the last"));
}

TEST(LeaseExplorerTest, FindsARenewalThatWasForgotten) {
  EXPECT_THAT(Found<Planted::ForgottenRenewal>(), HasSubstr("its lease ends at another time"));
}

TEST(LeaseExplorerTest, FindsAWriteThatWasRefusedWithoutNeed) {
  EXPECT_THAT(Found<Planted::StrictUpdate>(), HasSubstr("refused"));
}

TEST(LeaseExplorerTest, FindsAnEndThatCannotBeRepeated) {
  EXPECT_THAT(Found<Planted::FinishOnce>(), HasSubstr("refused"));
}

TEST(LeaseExplorerTest, FindsAWriteThatWasMadeTwice) {
  EXPECT_THAT(ExploreAll<RepeatedWrite>().violation, HasSubstr("a write was made again"));
}

}  // namespace
}  // namespace attune::store
