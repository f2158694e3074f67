#include "server/service/limits.h"

#include <limits>
#include <string>

#include "attune/v1/service.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::service {
namespace {

using ::testing::HasSubstr;

template <typename Request, typename Set>
std::string Error(Set set) {
  Request request;
  set(request);
  return std::string(CheckLimits(request).message());
}

TEST(Limits, WhatFitsPasses) {
  v1::RecordBaselineRequest request;
  v1::Baseline& baseline = *request.mutable_baseline();
  baseline.mutable_problem()->set_batch(1);
  baseline.set_contender(std::string(128, 'c'));
  baseline.set_note(std::string(1024, 'n'));
  baseline.set_median_us(1e300);
  baseline.mutable_record_time()->set_seconds(1'700'000'000);
  EXPECT_TRUE(CheckLimits(request).ok()) << CheckLimits(request);
  EXPECT_TRUE(CheckLimits(v1::PingRequest()).ok());
}

TEST(Limits, ATextThatIsTooLongIsNamedWithItsSizeAndNotRepeated) {
  EXPECT_EQ(
      Error<v1::RecordBaselineRequest>([](auto& r) { r.mutable_baseline()->set_note(std::string(5 << 20, 'n')); }),
      "baseline.note has 5242880 bytes; allowed: at most 1024");
  EXPECT_EQ(
      Error<v1::RecordBaselineRequest>([](auto& r) { r.mutable_baseline()->set_contender(std::string(129, 'n')); }),
      "baseline.contender has 129 bytes; allowed: at most 128");
  EXPECT_EQ(Error<v1::TuneRequest>([](auto& r) { r.set_request_id(std::string(129, 'n')); }),
            "request_id has 129 bytes; allowed: at most 128");
  EXPECT_EQ(Error<v1::EvaluateVariantRequest>([](auto& r) { r.set_why(std::string(1025, 'w')); }),
            "why has 1025 bytes; allowed: at most 1024");
  EXPECT_EQ(Error<v1::EvaluateVariantRequest>([](auto& r) { r.mutable_variant()->set_text(std::string(4097, 'A')); }),
            "variant.text has 4097 bytes; allowed: at most 4096");
  EXPECT_EQ(Error<v1::TuneRequest>([](auto& r) { r.add_families(std::string(257, 'f')); }),
            "families[0] has 257 bytes; allowed: at most 256");
  EXPECT_EQ(Error<v1::GetTrialRequest>([](auto& r) { r.set_name(std::string(257, 't')); }),
            "name has 257 bytes; allowed: at most 256");
}

TEST(Limits, AListThatIsTooLongIsNamedWithItsSize) {
  EXPECT_EQ(Error<v1::TuneRequest>([](auto& r) {
              for (int i = 0; i < 257; ++i) r.add_families("f");
            }),
            "families has 257 entries; allowed: at most 256");
  EXPECT_EQ(Error<v1::ListTrialsRequest>([](auto& r) {
              for (int i = 0; i < 17; ++i) r.mutable_filter()->add_verdicts(v1::VERDICT_OK);
            }),
            "filter.verdicts has 17 entries; allowed: at most 16");
  EXPECT_EQ(Error<v1::SweepRequest>([](auto& r) {
              for (int i = 0; i < 10001; ++i) r.mutable_plan()->add_shapes()->mutable_product()->add_batch(1);
            }),
            "plan.shapes has 10001 entries; allowed: at most 10000");
  EXPECT_EQ(
      Error<v1::SweepRequest>([](auto& r) {
        for (int i = 0; i < 10001; ++i) {
          (r.mutable_plan()->shapes_size() == 0 ? r.mutable_plan()->add_shapes() : r.mutable_plan()->mutable_shapes(0))
              ->mutable_product()
              ->add_seq_q(1);
        }
      }),
      "plan.shapes[0].product.seq_q has 10001 entries; allowed: at most 10000");
}

TEST(Limits, NumbersAreFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Error<v1::RecordBaselineRequest>([&](auto& r) { r.mutable_baseline()->set_low_us(nan); }),
            "baseline.low_us is nan; allowed: finite numbers");
  EXPECT_EQ(Error<v1::SweepRequest>([&](auto& r) { r.mutable_plan()->set_regression(-inf); }),
            "plan.regression is -inf; allowed: finite numbers");
}

TEST(Limits, EnumsAreThoseThatThereAre) {
  EXPECT_EQ(Error<v1::TuneRequest>([](auto& r) { r.set_policy(static_cast<v1::Policy>(7)); }),
            "policy is 7; allowed: HOT, COLD, L2_WARM");
  EXPECT_EQ(Error<v1::ListTrialsRequest>([](auto& r) { r.set_order(static_cast<v1::ListTrialsRequest::Order>(-1)); }),
            "order is -1; allowed: NEWEST, FASTEST");
  EXPECT_EQ(Error<v1::GetBestRequest>([](auto& r) { r.add_acceptable(v1::PROVENANCE_UNSPECIFIED); }),
            "acceptable[0] is 0; allowed: EXACT, TIE, STALE, NEAREST, HEURISTIC");
}

TEST(Limits, DurationsDoNotWrap) {
  const auto error = [](int64_t seconds, int nanos) {
    return Error<v1::TuneRequest>([&](auto& r) {
      r.mutable_strategy()->mutable_max_time()->set_seconds(seconds);
      r.mutable_strategy()->mutable_max_time()->set_nanos(nanos);
    });
  };
  EXPECT_EQ(error(0, 0), "");
  EXPECT_EQ(error(9223372037, 0), "");  // more nanoseconds than 63 bits hold
  EXPECT_EQ(error(315576000000, 999999999), "");
  EXPECT_EQ(error(-1, 0), "strategy.max_time is -1 s and 0 ns; allowed: 0 to 315576000000 s, with 0 to 999999999 ns");
  EXPECT_THAT(error(std::numeric_limits<int64_t>::min(), 0), HasSubstr("strategy.max_time is -9223372036854775808 s"));
  EXPECT_THAT(error(int64_t{1} << 62, 0), HasSubstr("allowed: 0 to 315576000000 s"));
  EXPECT_THAT(error(1, -5), HasSubstr("1 s and -5 ns"));
  EXPECT_THAT(error(1, 2147483647), HasSubstr("1 s and 2147483647 ns"));
}

TEST(Limits, TimesAreOfPeople) {
  const auto error = [](int64_t seconds, int nanos) {
    return Error<v1::RecordBaselineRequest>([&](auto& r) {
      r.mutable_baseline()->mutable_record_time()->set_seconds(seconds);
      r.mutable_baseline()->mutable_record_time()->set_nanos(nanos);
    });
  };
  EXPECT_EQ(error(1'700'000'000, 5), "");
  EXPECT_THAT(error(int64_t{1} << 62, -5), HasSubstr("baseline.record_time is 4611686018427387904 s"));
  EXPECT_THAT(error(-1, 0), HasSubstr("allowed: the years 1970 to 9999"));
}

}  // namespace
}  // namespace attune::service
