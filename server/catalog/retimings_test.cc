#include "server/catalog/retimings.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/testing/fake_store.h"

namespace attune::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kProblem[] = "b2.h8.q512.d64.f16";
constexpr int64_t kFirst = 1'800'000'000;

v1::Retiming At(int hour, double median_us, const std::string& variant = "tiles:BLOCK=1") {
  v1::Retiming retiming;
  retiming.set_problem_text(kProblem);
  retiming.set_device_id("cuda:0");
  retiming.set_policy(v1::POLICY_HOT);
  retiming.set_variant(variant);
  retiming.mutable_timing()->set_median_us(median_us);
  retiming.mutable_timing()->set_low_us(median_us - 1);
  retiming.mutable_timing()->set_high_us(median_us + 1);
  retiming.mutable_finish_time()->set_seconds(kFirst + hour * 3600);
  retiming.set_count(1);
  return retiming;
}

v1::Retiming WithQuantiles(v1::Retiming retiming) {
  retiming.mutable_timing()->add_quantiles_us(1);
  return retiming;
}

// "41 (3)" for three with the median 41.
std::vector<std::string> Texts(const std::vector<v1::Retiming>& retimings) {
  std::vector<std::string> texts;
  for (const v1::Retiming& retiming : retimings) {
    texts.push_back(absl::StrCat(retiming.timing().median_us(), " (", retiming.count(), ")"));
  }
  return texts;
}

TEST(Thinned, HasTheQuantilesOfWhatStandsForItselfAlone) {
  const std::vector<v1::Retiming> thinned =
      Thinned({WithQuantiles(At(10, 50)), WithQuantiles(At(1, 42)), WithQuantiles(At(0, 41))}, 2);
  EXPECT_THAT(Texts(thinned), ElementsAre("50 (1)", "41 (2)"));
  EXPECT_EQ(thinned[0].timing().quantiles_us_size(), 1);
  EXPECT_EQ(thinned[1].timing().quantiles_us_size(), 0);
}

TEST(Thinned, HasTheMedianOfEachSpanWithTheWidestInterval) {
  const std::vector<v1::Retiming> thinned =
      Thinned({At(10, 50), At(9, 52), At(8, 51), At(3, 44), At(2, 40), At(1, 42), At(0, 41)}, 2);
  EXPECT_THAT(Texts(thinned), ElementsAre("51 (3)", "41 (4)"));
  EXPECT_EQ(thinned[0].timing().low_us(), 49);
  EXPECT_EQ(thinned[0].timing().high_us(), 53);
  EXPECT_EQ(thinned[1].timing().low_us(), 39);
  EXPECT_EQ(thinned[1].timing().high_us(), 45);
  EXPECT_EQ(thinned[1].finish_time().seconds(), kFirst) << "it is one that was timed";
}

TEST(Thinned, MixesNeitherVariantsNorCardsNorPolicies) {
  v1::Retiming sister = At(0, 30);
  sister.set_device_uuid("GPU-1");
  v1::Retiming cold = At(0, 90);
  cold.set_policy(v1::POLICY_COLD);
  EXPECT_THAT(Texts(Thinned({At(0, 40), At(0, 20, "tiles:BLOCK=2"), sister, cold, At(0, 44)}, 1)),
              ElementsAre("40 (2)", "20 (1)", "30 (1)", "90 (1)"));
}

TEST(Thinned, OneTimeAndNoneStayAsTheyAre) {
  EXPECT_THAT(Texts(Thinned({At(5, 40)}, 60)), ElementsAre("40 (1)"));
  EXPECT_THAT(Thinned({}, 60), IsEmpty());
}

class ListRetimingsTest : public ::testing::Test {
 protected:
  ListRetimingsTest() {
    for (int hour = 0; hour < 3; ++hour) EXPECT_TRUE(store_.AppendRetiming(At(hour, 40 + hour), {}).ok());
    v1::Device& device = host_.devices.emplace_back();
    device.set_id("cuda:0");
    device.set_uuid("GPU-0");
    device.set_fingerprint("an L4");
    request_.set_problem(kProblem);
  }
  std::string Refused() {
    const absl::Status status = ListRetimings(request_, 50, store_, host_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  store::FakeStore store_;
  Host host_;
  v1::ListRetimingsRequest request_;
};

TEST_F(ListRetimingsTest, GivesPagesWithoutSpansAndAllOfThemWith) {
  const auto page = ListRetimings(request_, 2, store_, host_);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(Texts(page->items), ElementsAre("42 (1)", "41 (1)"));
  EXPECT_NE(page->next_page_token, "");
  request_.set_spans(1);
  const auto whole = ListRetimings(request_, 2, store_, host_);
  EXPECT_THAT(Texts(whole->items), ElementsAre("41 (3)"));
  EXPECT_EQ(whole->next_page_token, "");
}

TEST_F(ListRetimingsTest, TheTimeRangeHasItsStartAndNotItsEnd) {
  request_.mutable_start_time()->set_seconds(kFirst + 3600);
  request_.mutable_end_time()->set_seconds(kFirst + 2 * 3600);
  EXPECT_THAT(Texts(ListRetimings(request_, 50, store_, host_)->items), ElementsAre("41 (1)"));
}

TEST_F(ListRetimingsTest, ADeviceIsACardById) {
  request_.set_device_id("cuda:0");
  EXPECT_THAT(Texts(ListRetimings(request_, 50, store_, host_)->items), ElementsAre("42 (1)", "41 (1)", "40 (1)"));
  request_.set_device_id("cuda:7");
  EXPECT_THAT(ListRetimings(request_, 50, store_, host_)->items, IsEmpty());
}

TEST_F(ListRetimingsTest, NamesWhatIsWrong) {
  request_.set_spans(1001);
  EXPECT_THAT(Refused(), HasSubstr("spans is 1001; allowed: 0 to 1000"));
  request_.set_spans(-1);
  EXPECT_THAT(Refused(), HasSubstr("spans is -1"));
  request_.set_spans(10);
  request_.clear_problem();
  EXPECT_THAT(Refused(), HasSubstr("problem is empty"));
  request_.set_spans(0);
  request_.mutable_start_time()->set_seconds(kFirst + 1);
  request_.mutable_end_time()->set_seconds(kFirst);
  EXPECT_THAT(Refused(), HasSubstr("later than end_time"));
}

}  // namespace
}  // namespace attune::catalog
