// Operations of several principals: whose a request_id is, and what each may have.
#include <gtest/gtest.h>

#include "absl/strings/cord.h"
#include "absl/time/clock.h"
#include "server/base/reason.h"
#include "server/base/testing/logged.h"
#include "server/jobs/device_times.h"
#include "server/jobs/operations.h"
#include "server/metrics/jobs.h"
#include "server/store/testing/fake_store.h"

namespace attune::jobs {
namespace {

Operations::Wanted WantedBy(const std::string& principal, const std::string& identity, const std::string& id = "") {
  Operations::Wanted wanted;
  wanted.request = "request";
  wanted.request_id = id;
  wanted.identity = identity;
  wanted.title = "tune something";
  wanted.problem_text = "problem";
  wanted.principal = principal;
  return wanted;
}

void End(Operations& operations, const std::shared_ptr<LiveOperation>& live) {
  operations.Finish(live, v1::Operation::STATE_SUCCEEDED, absl::OkStatus(),
                    [](v1::Operation&) { return absl::OkStatus(); });
}

TEST(Operations, ARequestIdIsItsPrincipalsAlone) {
  store::FakeStore store;
  std::string mine;
  {
    Operations operations(&store.queue());
    mine = operations.Start(WantedBy("uid:1000", "a", "id"))->operation.name();
    const auto other = operations.Start(WantedBy("token:x", "b", "id"));
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_NE(other->operation.name(), mine);
    EXPECT_EQ(other->operation.request_id(), "id");
    EXPECT_EQ(other->operation.principal(), "token:x");
    EXPECT_EQ(operations.Start(WantedBy("uid:1000", "b", "id")).status().message(),
              "request_id is 'id', which was given to " + mine + ", another request; give this one an id of its own");
    // Whoever chooses what a principal is called, or an id, does not come upon another's.
    EXPECT_TRUE(operations.Start(WantedBy("uid:1000/i", "c", "d")).ok());
    EXPECT_TRUE(operations.Start(WantedBy("", "d", "8/uid:1000/ix")).ok());
  }
  Operations after_restart(&store.queue());
  EXPECT_EQ(after_restart.Start(WantedBy("uid:1000", "a", "id"))->operation.name(), mine);
}

TEST(Operations, AJobsTraceIsInItsLines) {
  store::FakeStore store;
  Operations operations(&store.queue());
  Operations::Wanted wanted = WantedBy("uid:1000", "a");
  wanted.trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  std::shared_ptr<LiveOperation> live;
  const std::string queued = Logged([&] { live = operations.Start(wanted)->live; });
  EXPECT_NE(queued.find("principal=uid:1000 trace=4bf92f3577b34da6a3ce929d0e0e4736\n"), std::string::npos) << queued;
  ASSERT_TRUE(live->Begin());
  const std::string ended = Logged([&] { End(operations, live); });
  EXPECT_NE(ended.find("principal=uid:1000 trace=4bf92f3577b34da6a3ce929d0e0e4736\n"), std::string::npos) << ended;
}

TEST(Operations, AreCountedOnceByKindAndStateWhenTheyEnd) {
  prometheus::Registry registry;
  metrics::Jobs metrics(registry);
  store::FakeStore store;
  Operations operations(&store.queue(), {}, SteadyNow, &metrics);
  Operations::Wanted wanted = WantedBy("", "a");
  wanted.kind = store::JobKind::kEvaluate;
  const auto ended = [&registry] {
    double count = 0;
    for (const auto& family : registry.Collect()) {
      if (family.name != "attune_jobs_total") continue;
      for (const auto& metric : family.metric) {
        const bool sought = metric.label.at(0).value == "evaluate" && metric.label.at(1).value == "succeeded";
        EXPECT_TRUE(sought || metric.counter.value == 0) << metric.label.at(0).value;
        if (sought) count = metric.counter.value;
      }
    }
    return count;
  };
  const auto first = operations.Start(wanted);
  EXPECT_EQ(operations.Start(wanted)->fresh, false);
  ASSERT_TRUE(first->live->Begin());
  EXPECT_EQ(ended(), 0);
  End(operations, first->live);
  EXPECT_EQ(ended(), 1);
}

TEST(Operations, APrincipalHasNoMoreThanItsQuotaButMayJoinAndOthersMayStart) {
  store::FakeStore store;
  Operations operations(&store.queue());
  const auto of = [](const std::string& principal, const std::string& identity) {
    Operations::Wanted wanted = WantedBy(principal, identity);
    wanted.most_of_principal = 2;
    return wanted;
  };
  const auto first = operations.Start(of("token:x", "first"));
  ASSERT_TRUE(operations.Start(of("token:x", "second")).ok());
  const absl::Status refused = operations.Start(of("token:x", "third")).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(), "token:x has 2 operations queued or running; its quota of operations is 2");
  EXPECT_EQ(refused.GetPayload(kQuotaUrl), absl::Cord("operations"));
  EXPECT_TRUE(refused.GetPayload(kRetryDelayUrl).has_value());
  EXPECT_EQ(operations.Start(of("token:x", "second"))->fresh, false);
  EXPECT_TRUE(operations.Start(of("token:y", "third")).ok());
  EXPECT_TRUE(operations.Start(WantedBy("", "the daemon's own")).ok());
  ASSERT_TRUE(first->live->Begin());
  End(operations, first->live);
  EXPECT_TRUE(operations.Start(of("token:x", "fourth")).ok());
}

TEST(Operations, APrincipalsDeviceTimeOfTodayEndsWithItsQuotaAlsoAfterARestart) {
  store::FakeStore store;
  absl::Duration now;
  Operations::Wanted wanted = WantedBy("token:x", "first");
  wanted.most_device_time = absl::Seconds(30);
  {
    Operations operations(&store.queue(), {}, [&now] { return now; });
    const auto first = operations.Start(wanted);
    ASSERT_TRUE(first->live->Begin("cuda:0"));
    now += absl::Seconds(29);
    wanted.identity = "second";
    EXPECT_TRUE(operations.Start(wanted).ok()) << "29 s are less";
    now += absl::Seconds(1);
    wanted.identity = "third";
    EXPECT_EQ(operations.Start(wanted).status().message(),
              "token:x has had 30 s of device time today (UTC); its quota of device_seconds is 30")
        << "while it runs";
    End(operations, first->live);
    EXPECT_EQ(store.queue().Get(first->live->name())->operation.device_time().seconds(), 30);
  }
  Operations operations(&store.queue(), {}, [&now] { return now; });
  EXPECT_TRUE(operations.Start(wanted).ok()) << "it has not read what was";
  ASSERT_TRUE(operations.ReadDeviceTimes(absl::Now()).ok());
  wanted.identity = "fourth";
  const absl::Status refused = operations.Start(wanted).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.GetPayload(kQuotaUrl), absl::Cord("device_seconds"));
  EXPECT_TRUE(refused.GetPayload(kRetryDelayUrl).has_value());
  wanted.principal = "token:y";
  EXPECT_TRUE(operations.Start(wanted).ok());
}

TEST(Operations, DeviceTimeThatIsReadAgainCountsOnce) {
  store::FakeStore store;
  absl::Duration now;
  {
    Operations operations(&store.queue(), {}, [&now] { return now; });
    const auto ended = operations.Start(WantedBy("token:x", "first"));
    ASSERT_TRUE(ended->live->Begin("cuda:0"));
    now += absl::Seconds(20);
    End(operations, ended->live);
  }
  Operations operations(&store.queue(), {}, [&now] { return now; });
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(operations.ReadDeviceTimes(absl::Now()).ok());
  Operations::Wanted wanted = WantedBy("token:x", "second");
  wanted.most_device_time = absl::Seconds(30);
  EXPECT_TRUE(operations.Start(wanted).ok()) << "20 s are less";
  wanted.identity = "third";
  wanted.most_device_time = absl::Seconds(20);
  EXPECT_EQ(operations.Start(wanted).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Operations, DeviceTimeIsThatOnACardAndNotThatOfWaiting) {
  store::FakeStore store;
  absl::Duration now;
  Operations operations(&store.queue(), {}, [&now] { return now; });
  const auto started = operations.Start(WantedBy("", "first"));
  now += absl::Seconds(100);  // in the queue
  ASSERT_TRUE(started->live->Begin("cuda:0"));
  now += absl::Seconds(1);
  trials::QueuePlace place;
  place.first = "operations/other";
  place.position = 1;
  started->live->waiter().moved(place);
  now += absl::Seconds(1000);
  place = {};
  place.on_device = true;
  started->live->waiter().moved(place);
  now += absl::Seconds(2);
  EXPECT_EQ(started->live->device_time(), absl::Seconds(3));
  End(operations, started->live);
  now += absl::Seconds(50);
  EXPECT_EQ(started->live->Snapshot().device_time().seconds(), 3);
}

TEST(DeviceTimes, AreOfOneDay) {
  DeviceTimes times;
  const absl::Time noon = absl::FromUnixSeconds(12 * 3600);
  times.Add("token:x", absl::Seconds(5), noon);
  times.Add("token:x", absl::Seconds(6), noon + absl::Hours(11));
  EXPECT_EQ(times.Of("token:x", noon + absl::Hours(11.9)), absl::Seconds(11));
  EXPECT_EQ(times.Of("token:y", noon), absl::ZeroDuration());
  EXPECT_EQ(times.Of("token:x", noon + absl::Hours(12)), absl::ZeroDuration());
  times.Add("token:x", absl::Seconds(7), noon);  // of the day before
  EXPECT_EQ(times.Of("token:x", noon + absl::Hours(12)), absl::ZeroDuration());
}

TEST(Operations, OfAPrincipalAreCountedAfterARestartToo) {
  store::FakeStore store;
  Operations::Wanted wanted = WantedBy("token:x", "first");
  wanted.most_of_principal = 1;
  std::string name;
  {
    Operations operations(&store.queue());
    name = operations.Start(wanted)->operation.name();
  }
  Operations operations(&store.queue());
  ASSERT_NE(operations.Adopt(*store.queue().Get(name), "first"), nullptr);
  wanted.identity = "second";
  EXPECT_EQ(operations.Start(wanted).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace attune::jobs
