#include "client/dashboard/query_fields.h"

#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trend.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::dashboard {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

// `text` as a query's fields of Request; what is wrong goes to `error`.
template <typename Request>
Request Read(const std::string& text, std::optional<FieldError>* error = nullptr, const QueryRules& rules = {}) {
  Request request;
  const std::optional<Query> query = ParseQuery(text);
  EXPECT_TRUE(query.has_value()) << text;
  const std::optional<FieldError> found = SetFields(query.value_or(Query()), rules, &request);
  if (error != nullptr) {
    *error = found;
  } else {
    EXPECT_FALSE(found.has_value()) << found->field << " " << found->allowed;
  }
  return request;
}
template <typename Request>
FieldError ErrorOf(const std::string& text, const QueryRules& rules = {}) {
  std::optional<FieldError> error;
  Read<Request>(text, &error, rules);
  EXPECT_TRUE(error.has_value()) << text;
  return error.value_or(FieldError());
}

TEST(ParseQuery, DecodesNamesAndValues) {
  EXPECT_THAT(*ParseQuery("a=b+c&d%2Ee=%C3%A9&f&g=1=2"),
              ElementsAre(Pair("a", "b c"), Pair("d.e", "\u00e9"), Pair("f", ""), Pair("g", "1=2")));
}

TEST(ParseQuery, RefusesWhatIsNoText) {
  for (const char* text : {"a=%", "a=%2", "a=%-1", "a=%zz", "a=%ff", "a=%00", "a=%0a", "%0d=1"}) {
    EXPECT_FALSE(ParseQuery(text).has_value()) << text;
  }
}

TEST(SetFields, SetsFieldsOfEveryKind) {
  const auto request = Read<v1::ListTrendsRequest>(
      "page_size=20&problem=b1.h1.q128.d64.f16&policy=POLICY_COLD&start_time=2026-11-01T00:00:00Z&regression=0.05&"
      "states=STATE_SLOWER&states=STATE_MOVED");
  EXPECT_EQ(request.page_size(), 20);
  EXPECT_EQ(request.problem(), "b1.h1.q128.d64.f16");
  EXPECT_EQ(request.policy(), v1::POLICY_COLD);
  EXPECT_EQ(request.start_time().seconds(), 1793491200);
  EXPECT_EQ(request.regression(), 0.05);
  EXPECT_THAT(request.states(), ElementsAre(v1::Trend::STATE_SLOWER, v1::Trend::STATE_MOVED));
  EXPECT_TRUE(Read<v1::ListOperationsRequest>("active_only=true").active_only());
}

TEST(SetFields, ReachesNestedFieldsByTheirDots) {
  const auto request =
      Read<v1::ListTrialsRequest>("filter.problem=b1.h1.q128.d64.f16&filter.verdicts=VERDICT_OK&view=TRIAL_VIEW_BASIC");
  EXPECT_EQ(request.filter().problem(), "b1.h1.q128.d64.f16");
  EXPECT_THAT(request.filter().verdicts(), ElementsAre(v1::VERDICT_OK));
  EXPECT_EQ(request.view(), v1::TRIAL_VIEW_BASIC);
}

TEST(SetFields, ReadsAProblemFromItsText) {
  const auto request = Read<v1::GetBestRequest>("problem=b2.h8.q512.d64.f16.causal&wait=1.5s");
  EXPECT_EQ(request.problem().heads_q(), 8);
  EXPECT_EQ(request.problem().mask(), v1::MASK_CAUSAL_TOP_LEFT);
  EXPECT_EQ(request.wait().nanos(), 500'000'000);
}

TEST(SetFields, AnUnknownParameterIsNamedWithThoseThatThereAre) {
  for (const char* name :
       {"nothing", "filter", "filter.nothing", "filter.problem.text", "page_size.x", "Page_size", ".", "", "filter."}) {
    const FieldError error = ErrorOf<v1::ListTrialsRequest>(absl::StrCat(name, "=1"));
    EXPECT_EQ(error.field, name);
    EXPECT_EQ(error.value, "1");
    EXPECT_THAT(error.allowed, HasSubstr("page_size, page_token, filter.problem, filter.device_id"));
  }
  EXPECT_THAT(ErrorOf<v1::ListDevicesRequest>("x=1").allowed, HasSubstr("none"));
}

TEST(SetFields, AValueThatTheFieldCannotHoldIsNamedWithWhatIsAllowed) {
  struct Wrong {
    const char* field;
    const char* value;
    const char* allowed;
  };
  for (const Wrong& wrong :
       {Wrong{"page_size", "x", "integers"}, Wrong{"page_size", "", "integers"},
        Wrong{"page_size", "2147483648", "32 bits"}, Wrong{"policy", "hot", "POLICY_HOT, POLICY_COLD, POLICY_L2_WARM"},
        Wrong{"policy", "1", "POLICY_HOT"}, Wrong{"start_time", "yesterday", "2026-11-01T00:00:00Z"},
        Wrong{"regression", "nan", "finite"}, Wrong{"regression", "inf", "finite"},
        Wrong{"states", "SLOWER", "STATE_SLOWER"}}) {
    const FieldError error = ErrorOf<v1::ListTrendsRequest>(absl::StrCat(wrong.field, "=", wrong.value));
    EXPECT_EQ(error.field, wrong.field);
    EXPECT_EQ(error.value, wrong.value);
    EXPECT_THAT(error.allowed, HasSubstr(wrong.allowed));
  }
  EXPECT_THAT(ErrorOf<v1::ListTrendsRequest>("policy=x").allowed, Not(HasSubstr("UNSPECIFIED")));
  EXPECT_EQ(ErrorOf<v1::ListOperationsRequest>("active_only=1").allowed, "true, false");
  EXPECT_THAT(ErrorOf<v1::GetBestRequest>("problem=b2.h8.q512.d64.f32").allowed,
              AllOf(HasSubstr("a problem as"), HasSubstr("'f32' is not known")));
  EXPECT_THAT(ErrorOf<v1::GetBestRequest>("wait=soon").allowed, HasSubstr("3.5s"));
}

TEST(SetFields, OnlyAListTakesSeveralValues) {
  const FieldError error = ErrorOf<v1::ListTrendsRequest>("page_size=1&page_size=1");
  EXPECT_EQ(error.field, "page_size");
  EXPECT_EQ(error.allowed, "one value");
}

TEST(SetFields, TwoOfOneofContradictEachOther) {
  const FieldError error = ErrorOf<v1::ExplainRequest>("trial=trials/1&best.problem=b1.h1.q128.d64.f16");
  EXPECT_EQ(error.field, "best.problem");
  EXPECT_EQ(error.allowed, "one subject");
}

TEST(SetFields, ShortNamesAreThoseOfNestedFields) {
  const QueryRules rules = {.aliases = {{"problem", "best.problem"}}};
  EXPECT_EQ(Read<v1::ExplainRequest>("problem=b1.h1.q128.d64.f16", nullptr, rules).best().problem().seq_q(), 128);
  EXPECT_EQ(ErrorOf<v1::ExplainRequest>("problem=b1.h1.q128.d64.f16&best.problem=b1.h1.q128.d64.f16", rules).allowed,
            "one value");
}

TEST(SetFields, RefusedFieldsAreAsUnknownOnes) {
  const FieldError error = ErrorOf<v1::GetBestRequest>("include_artifact=true", {.refused = {"include_artifact"}});
  EXPECT_THAT(error.allowed, AllOf(HasSubstr("problem, device_id"), Not(HasSubstr("include_artifact"))));
}

}  // namespace
}  // namespace attune::dashboard
