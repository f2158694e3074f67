#include "server/jobs/forget_host.h"

#include "gtest/gtest.h"
#include "server/store/testing/fake_store.h"

namespace attune::jobs {
namespace {

class ForgetHostTest : public testing::Test {
 protected:
  void SetUp() override {
    v1::Host host;
    host.set_name("hosts/gone");
    ASSERT_TRUE(store_.hosts().Register(host, 1).ok());
  }

  void Make(const std::string& name, const std::string& home, const std::string& device_class = "") {
    store::Job job;
    job.name = name;
    job.request = name;
    job.home = home;
    job.device_class = device_class;
    job.operation.set_name(name);
    ASSERT_TRUE(store_.queue().Create(job, {}).ok());
  }
  v1::Operation Get(const std::string& name) { return store_.queue().Get(name)->operation; }

  store::FakeStore store_;
};

TEST_F(ForgetHostTest, EndsWhatItAloneCouldHaveWorkedOn) {
  Make("operations/own", "gone");
  Make("operations/cancelled", "gone");
  Make("operations/other", "here");
  Make("operations/of_class", "gone", "l4");
  ASSERT_TRUE(store_.queue().Cancel("operations/cancelled").ok());
  ASSERT_TRUE(store_.hosts().Leave("hosts/gone", 1).ok());
  ASSERT_TRUE(ForgetHost(store_, "hosts/gone").ok());
  EXPECT_EQ(Get("operations/own").state(), v1::Operation::STATE_FAILED);
  EXPECT_EQ(Get("operations/own").error().message(), "hosts/gone, whose device it names, was forgotten");
  EXPECT_TRUE(Get("operations/own").has_end_time());
  EXPECT_EQ(Get("operations/cancelled").state(), v1::Operation::STATE_CANCELLED);
  EXPECT_FALSE(Get("operations/other").done());
  EXPECT_FALSE(Get("operations/of_class").done());
}

TEST_F(ForgetHostTest, CanBeRepeatedWhenTheStoreWentAwayInTheMiddle) {
  Make("operations/own", "gone");
  ASSERT_TRUE(store_.hosts().Leave("hosts/gone", 1).ok());
  store_.queue().FailWrites(absl::UnavailableError("the database is away"));
  EXPECT_EQ(ForgetHost(store_, "hosts/gone").status().code(), absl::StatusCode::kUnavailable);
  store_.queue().FailWrites(absl::OkStatus());
  store_.queue().FailGets(absl::UnavailableError("the database is away"));
  EXPECT_EQ(ForgetHost(store_, "hosts/gone").status().code(), absl::StatusCode::kUnavailable);
  store_.queue().FailGets(absl::OkStatus());
  EXPECT_EQ(store_.hosts().List()->size(), 1);
  ASSERT_TRUE(ForgetHost(store_, "hosts/gone").ok());
  EXPECT_EQ(Get("operations/own").state(), v1::Operation::STATE_FAILED);
  EXPECT_TRUE(store_.hosts().List()->empty());
}

TEST_F(ForgetHostTest, TouchesNothingOfAHostThatLives) {
  Make("operations/own", "gone");
  EXPECT_EQ(ForgetHost(store_, "hosts/gone").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(Get("operations/own").done());
  EXPECT_EQ(ForgetHost(store_, "hosts/other").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace attune::jobs
