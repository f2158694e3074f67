#include "gmock/gmock.h"
#include "server/base/proto_time.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class HostsContract : public StoreContract {
 protected:
  static v1::Host Sample(const std::string& name) {
    v1::Host host;
    host.set_name(name);
    host.set_version("1.2");
    host.add_devices()->set_id("cuda:0");
    host.add_backends()->set_compiler("nvrtc 13.0");
    return host;
  }

  void MustRegister(const std::string& name, int64_t incarnation) {
    const absl::Status status = store().hosts().Register(Sample(name), incarnation);
    ASSERT_TRUE(status.ok()) << status;
  }

  std::vector<std::string> Listed() {
    std::vector<std::string> lines;
    const absl::StatusOr<std::vector<v1::Host>> hosts = store().hosts().List();
    EXPECT_TRUE(hosts.ok()) << hosts.status();
    for (const v1::Host& host : hosts.value_or(std::vector<v1::Host>())) {
      lines.push_back(host.name() + " " + v1::Host::State_Name(host.state()).substr(6) +
                      (host.draining() ? " draining" : ""));
    }
    return lines;
  }
};

INSTANTIATE_TEST_SUITE_P(, HostsContract, testing::ValuesIn(Implementations()), ImplementationName);

TEST_P(HostsContract, AreListedByNameAsTheyRegistered) {
  EXPECT_THAT(Listed(), IsEmpty());
  MustRegister("hosts/b", 1);
  MustRegister("hosts/a", 2);
  EXPECT_THAT(Listed(), ElementsAre("hosts/a LIVE", "hosts/b LIVE"));
  const v1::Host a = store().hosts().List()->front();
  EXPECT_EQ(a.version(), "1.2");
  EXPECT_EQ(a.devices(0).id(), "cuda:0");
  EXPECT_EQ(a.backends(0).compiler(), "nvrtc 13.0");
  EXPECT_EQ(TimeOf(a.start_time()), now_);
}

TEST_P(HostsContract, AreLostWhenTheyWereNotHeardOfForTheTtl) {
  MustRegister("hosts/a", 1);
  now_ += kHostTtl - absl::Seconds(1);
  EXPECT_THAT(Listed(), ElementsAre("hosts/a LIVE"));
  now_ += absl::Seconds(1);
  EXPECT_THAT(Listed(), ElementsAre("hosts/a LOST"));
  EXPECT_EQ(DurationOf(store().hosts().List()->front().heartbeat_age()), kHostTtl);
  ASSERT_TRUE(store().hosts().Beat("hosts/a", 1).ok()) << "it was only late";
  EXPECT_THAT(Listed(), ElementsAre("hosts/a LIVE"));
  EXPECT_EQ(TimeOf(store().hosts().List()->front().heartbeat_time()), now_);
}

TEST_P(HostsContract, AnEarlierStartIsHeardNoLonger) {
  MustRegister("hosts/a", 1);
  MustRegister("hosts/a", 2);
  EXPECT_EQ(store().hosts().Beat("hosts/a", 1).status().code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(store().hosts().Leave("hosts/a", 1).ok());
  EXPECT_THAT(Listed(), ElementsAre("hosts/a LIVE"));
  EXPECT_TRUE(store().hosts().Beat("hosts/a", 2).ok());
  EXPECT_EQ(store().hosts().Beat("hosts/b", 1).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(HostsContract, AreStoppedWhenTheySaySoUntilTheyStartAgain) {
  MustRegister("hosts/a", 1);
  ASSERT_TRUE(store().hosts().Leave("hosts/a", 1).ok());
  EXPECT_THAT(Listed(), ElementsAre("hosts/a STOPPED"));
  MustRegister("hosts/a", 2);
  EXPECT_THAT(Listed(), ElementsAre("hosts/a LIVE"));
}

TEST_P(HostsContract, DoNotDrainWhereNobodyElseCouldDoTheirWork) {
  if (GetParam().name != "sqlite") GTEST_SKIP() << "its hosts share the queue";
  MustRegister("hosts/a", 1);
  const absl::Status refused = store().hosts().SetDraining("hosts/a", true).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("hosts/a has a store of its own"));
  EXPECT_FALSE(*store().hosts().Beat("hosts/a", 1));
}

TEST_P(HostsContract, DrainOverStartsUntilTheyAreToldOtherwise) {
  if (GetParam().name == "sqlite") GTEST_SKIP() << "one process alone has it";
  MustRegister("hosts/a", 1);
  EXPECT_FALSE(*store().hosts().Beat("hosts/a", 1));
  EXPECT_TRUE(store().hosts().SetDraining("hosts/a", true)->draining());
  EXPECT_TRUE(*store().hosts().Beat("hosts/a", 1));
  MustRegister("hosts/a", 2);
  EXPECT_THAT(Listed(), ElementsAre("hosts/a LIVE draining"));
  EXPECT_FALSE(store().hosts().SetDraining("hosts/a", false)->draining());
  EXPECT_FALSE(*store().hosts().Beat("hosts/a", 2));
  EXPECT_EQ(store().hosts().SetDraining("hosts/b", true).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(HostsContract, AreForgottenUnlessTheyLive) {
  MustRegister("hosts/a", 1);
  const absl::Status alive = store().hosts().Forget("hosts/a").status();
  EXPECT_EQ(alive.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(alive.message(), HasSubstr("hosts/a is alive"));
  now_ += kHostTtl;
  EXPECT_EQ(store().hosts().Forget("hosts/a")->state(), v1::Host::STATE_LOST);
  EXPECT_THAT(Listed(), IsEmpty());
  EXPECT_EQ(store().hosts().Forget("hosts/a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().hosts().Beat("hosts/a", 1).status().code(), absl::StatusCode::kNotFound);
}

// A job of a class that has a home names a card of that host.
TEST_P(HostsContract, HaveWhatNamesTheirCardsFirst) {
  if (GetParam().name == "sqlite") GTEST_SKIP() << "one process alone has it";
  const auto claimed = [this](const std::string& holder) {
    const auto job = store().queue().Claim(holder, {{"l4", 0}}, absl::Hours(1));
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() && job->has_value() ? (*job)->name : "";
  };
  MustRegister("hosts/one", 1);
  for (const char* name : {"operations/a", "operations/b", "operations/c", "operations/d", "operations/any"}) {
    Job job;
    job.name = name;
    job.device_class = "l4";
    if (job.name != "operations/any") job.home = "one";
    job.operation.set_name(name);
    ASSERT_TRUE(store().queue().Create(job, {}).ok());
  }
  EXPECT_EQ(claimed("two"), "operations/any") << "past what is none of its";
  EXPECT_EQ(claimed("two"), "");
  EXPECT_EQ(claimed("one"), "operations/a");
  ASSERT_TRUE(store().hosts().SetDraining("hosts/one", true).ok());
  EXPECT_EQ(claimed("two"), "operations/b") << "it drains";
  ASSERT_TRUE(store().hosts().SetDraining("hosts/one", false).ok());
  EXPECT_EQ(claimed("two"), "");
  now_ += kHostTtl;
  EXPECT_EQ(claimed("two"), "operations/c") << "it is lost";
  MustRegister("hosts/one", 2);
  EXPECT_EQ(claimed("two"), "");
  ASSERT_TRUE(store().hosts().Leave("hosts/one", 2).ok());
  EXPECT_EQ(claimed("two"), "operations/d") << "it has stopped";
}

TEST_P(HostsContract, NeedAName) {
  for (const char* name : {"", "a", "hosts/"}) {
    EXPECT_EQ(store().hosts().Register(Sample(name), 1).code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

}  // namespace
}  // namespace attune::store
