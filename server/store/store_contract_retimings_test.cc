#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kNight = 1'800'000'000;

// With every field set.
v1::Retiming SampleRetiming(double median_us = 40, int night = 0) {
  v1::Retiming retiming;
  retiming.set_problem_text(kProblem);
  retiming.set_device_id(kDevice);
  retiming.set_device_uuid("GPU-0");
  retiming.set_policy(v1::POLICY_HOT);
  retiming.set_variant("attention_simt:BLOCK_M=64");
  retiming.mutable_timing()->set_median_us(median_us);
  retiming.mutable_timing()->set_low_us(median_us - 1);
  retiming.mutable_timing()->set_sm_clock_mhz(1980);
  retiming.mutable_dependencies()->set_source_hash("source 1");
  retiming.mutable_dependencies()->set_toolchain("nvrtc 13.0");
  retiming.mutable_dependencies()->set_driver("580.1");
  retiming.mutable_dependencies()->set_device_fingerprint(kClass);
  retiming.set_job("operations/a");
  retiming.mutable_finish_time()->set_seconds(kNight + night * 86400);
  retiming.set_count(1);
  return retiming;
}

class RetimingContract : public StoreContract {
 protected:
  std::string Append(const v1::Retiming& retiming) {
    const absl::StatusOr<std::string> name = store().AppendRetiming(retiming, {});
    EXPECT_TRUE(name.ok()) << name.status();
    return name.value_or("");
  }

  std::vector<double> List(const RetimingFilter& filter) {
    std::vector<double> medians;
    std::string token;
    do {
      const absl::StatusOr<Page<v1::Retiming>> page = store().ListRetimings(filter, 2, token);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const v1::Retiming& retiming : page->items) medians.push_back(retiming.timing().median_us());
      token = page->next_page_token;
    } while (!token.empty());
    return medians;
  }
};

TEST_P(RetimingContract, SurvivesReopeningAsItWasAppended) {
  v1::Retiming retiming = SampleRetiming();
  retiming.set_name(Append(retiming));
  Reopen();
  const absl::StatusOr<Page<v1::Retiming>> page = store().ListRetimings({}, 10, "");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->items.size(), 1U);
  EXPECT_TRUE(MessageDifferencer::Equals(page->items[0], retiming)) << page->items[0].DebugString();
}

TEST_P(RetimingContract, IsOfNowUnlessItSaysWhen) {
  v1::Retiming retiming = SampleRetiming();
  retiming.clear_finish_time();
  Append(retiming);
  EXPECT_GT(store().ListRetimings({}, 10, "")->items[0].finish_time().seconds(), 1'700'000'000);
}

TEST_P(RetimingContract, AreListedByFilterThoseStoredLastFirst) {
  for (int night = 0; night < 5; ++night) Append(SampleRetiming(40 + night, night));
  v1::Retiming other = SampleRetiming(1, 5);
  other.set_problem_text("b1.h1.q1.d64.f16");
  other.set_device_id("cuda:1");
  other.set_device_uuid("");
  other.set_policy(v1::POLICY_COLD);
  other.mutable_dependencies()->set_device_fingerprint("h200");
  Append(other);
  const auto night = [](int number) { return absl::FromUnixSeconds(kNight + number * 86400); };
  EXPECT_THAT(List({}), ElementsAre(1, 44, 43, 42, 41, 40));
  EXPECT_THAT(List({.problem_text = kProblem}), ElementsAre(44, 43, 42, 41, 40));
  EXPECT_THAT(List({.begin = night(3)}), ElementsAre(1, 44, 43));
  EXPECT_THAT(List({.end = night(2)}), ElementsAre(41, 40));
  EXPECT_THAT(List({.device_class = "h200"}), ElementsAre(1));
  EXPECT_THAT(List({.device_id = "cuda:1"}), ElementsAre(1));
  EXPECT_THAT(List({.device_uuid = "GPU-0", .begin = night(4)}), ElementsAre(44));
  EXPECT_THAT(List({.policy = v1::POLICY_COLD}), ElementsAre(1));
  EXPECT_THAT(List({.problem_text = "b9.h1.q1.d64.f16"}), IsEmpty());
}

TEST_P(RetimingContract, APagesTokenIsGoodForItsListingAlone) {
  for (int night = 0; night < 3; ++night) Append(SampleRetiming(40, night));
  const std::string token = store().ListRetimings({.problem_text = kProblem}, 1, "")->next_page_token;
  EXPECT_TRUE(store().ListRetimings({.problem_text = kProblem}, 1, token).ok());
  EXPECT_EQ(store().ListRetimings({}, 1, token).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(RetimingContract, NamesWhatIsMissing) {
  const auto refused = [this](auto change) {
    v1::Retiming retiming = SampleRetiming();
    change(retiming);
    const absl::Status status = store().AppendRetiming(retiming, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refused([](v1::Retiming& r) { r.clear_problem_text(); }), HasSubstr("problem_text is not set"));
  EXPECT_THAT(refused([](v1::Retiming& r) { r.clear_device_id(); }), HasSubstr("device_id is not set"));
  EXPECT_THAT(refused([](v1::Retiming& r) { r.clear_variant(); }), HasSubstr("variant is not set"));
  EXPECT_THAT(refused([](v1::Retiming& r) { r.clear_policy(); }), HasSubstr("policy is not set"));
  EXPECT_THAT(refused([](v1::Retiming& r) { r.clear_timing(); }), HasSubstr("timing.median_us is 0"));
  EXPECT_THAT(List({}), IsEmpty());
}

TEST_P(RetimingContract, IsMadeOnceAndRefusedFromAStaleHolder) {
  Job job;
  job.name = "operations/a";
  job.kind = JobKind::kSweep;
  job.operation.set_name(job.name);
  ASSERT_TRUE(store().queue().Create(job, {}).ok());
  const int64_t epoch = (*store().queue().Lease(job.name, "one", absl::Minutes(1)))->epoch;
  const JobWrite write = NewWrite({job.name, epoch});
  const absl::StatusOr<std::string> name = store().AppendRetiming(SampleRetiming(), write);
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(*store().AppendRetiming(SampleRetiming(), write), *name);
  EXPECT_THAT(List({}), ElementsAre(40));
  ASSERT_TRUE(store().queue().Lease(job.name, "one", absl::Minutes(1)).ok());
  EXPECT_TRUE(IsStale(store().AppendRetiming(SampleRetiming(), NewWrite({job.name, epoch})).status()));
  EXPECT_THAT(List({}), ElementsAre(40));
}

INSTANTIATE_TEST_SUITE_P(Store, RetimingContract, testing::ValuesIn(Implementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
