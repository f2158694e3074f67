// Listings against a plain model, with as many trials as a store is meant to hold.
#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/sqlite/database.h"
#include "server/store/sqlite/trials.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

constexpr int kTrials = 100'000;
constexpr int kVariants = 5'000;
constexpr int kProblems = 10;

struct Row {
  int id;  // from 1, as appended
  int problem;
  bool ok;
  double median_us;
};

Row MakeRow(int id) {
  const uint32_t scrambled = static_cast<uint32_t>(id) * 2654435761U;
  return {id, id / kVariants % kProblems, scrambled % 7 != 0, 1 + scrambled / 16 % 5000 * 0.25};
}

std::string ProblemText(int problem) { return absl::StrCat("b", problem + 1, ".h8.q512.d64.f16"); }

v1::Trial MakeTrial(const Row& row) {
  v1::Trial trial = SampleTrial(row.id % kVariants, row.median_us);
  trial.set_problem_text(ProblemText(row.problem));
  trial.set_verdict(row.ok ? v1::VERDICT_OK : v1::VERDICT_INFEASIBLE);
  trial.set_job(absl::StrCat("operations/", row.problem));
  return trial;
}

class Load : public testing::Test {
 protected:
  // One transaction, for speed; what is tested is reading.
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TestDirectory>();
    absl::StatusOr<std::unique_ptr<sqlite::Connection>> writer = sqlite::OpenWriter(directory_->path() + "/attune.db");
    ASSERT_TRUE(writer.ok()) << writer.status();
    absl::StatusOr<std::unique_ptr<sqlite::Transaction>> transaction = sqlite::Transaction::Begin(**writer);
    ASSERT_TRUE(transaction.ok()) << transaction.status();
    for (int id = 1; id <= kTrials; ++id) {
      ASSERT_EQ(sqlite::AppendTrial(**writer, MakeTrial(MakeRow(id)), {}).value(), absl::StrCat("trials/", id));
    }
    ASSERT_TRUE((*transaction)->Commit().ok());
  }
  static void TearDownTestSuite() { directory_.reset(); }

  Load() : store_(OpenSqliteStore({.directory = directory_->path()}).value()) {}

  static std::vector<Row> Model(int problem, bool only_ok) {
    std::vector<Row> rows;
    for (int id = 1; id <= kTrials; ++id) {
      const Row row = MakeRow(id);
      if ((problem < 0 || row.problem == problem) && (row.ok || !only_ok)) rows.push_back(row);
    }
    return rows;
  }

  std::vector<std::string> List(const v1::TrialFilter& filter, v1::ListTrialsRequest::Order order, size_t at_most) {
    std::vector<std::string> names;
    std::string token;
    do {
      absl::StatusOr<Page<v1::Trial>> page = store_->ListTrials(filter, order, 997, token);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      for (const v1::Trial& trial : page->items) names.push_back(trial.name());
      token = page->next_page_token;
    } while (!token.empty() && names.size() < at_most);
    names.resize(std::min(names.size(), at_most));
    return names;
  }

  static std::vector<std::string> Names(const std::vector<Row>& rows, size_t at_most) {
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(rows.size(), at_most); ++i) names.push_back(absl::StrCat("trials/", rows[i].id));
    return names;
  }

  static std::unique_ptr<TestDirectory> directory_;
  std::unique_ptr<Store> store_;
};

std::unique_ptr<TestDirectory> Load::directory_;

TEST_F(Load, ListsAllNewestFirst) {
  std::vector<Row> rows = Model(-1, false);
  std::reverse(rows.begin(), rows.end());
  EXPECT_EQ(List({}, v1::ListTrialsRequest::ORDER_NEWEST, kTrials + 1), Names(rows, kTrials + 1));
}

TEST_F(Load, ListsAllFastestFirst) {
  std::vector<Row> rows = Model(-1, true);
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.median_us < b.median_us; });
  EXPECT_EQ(List({}, v1::ListTrialsRequest::ORDER_FASTEST, 10'000), Names(rows, 10'000));
}

TEST_F(Load, ListsOneProblemsOkTrialsFastestFirst) {
  std::vector<Row> rows = Model(3, true);
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.median_us < b.median_us; });
  v1::TrialFilter filter;
  filter.set_problem(ProblemText(3));
  filter.add_verdicts(v1::VERDICT_OK);
  EXPECT_EQ(List(filter, v1::ListTrialsRequest::ORDER_FASTEST, kTrials), Names(rows, kTrials));
}

TEST_F(Load, ListsAJobsTrialsNewestFirst) {
  std::vector<Row> rows = Model(9, false);
  std::reverse(rows.begin(), rows.end());
  v1::TrialFilter filter;
  filter.set_job("operations/9");
  filter.set_device_id(kDevice);
  EXPECT_EQ(List(filter, v1::ListTrialsRequest::ORDER_NEWEST, kTrials), Names(rows, kTrials));
}

TEST_F(Load, KnowsOneTrialAVariant) {
  absl::StatusOr<std::vector<v1::Trial>> known =
      store_->KnownTrials(ProblemText(4), {kDevice, "GPU-0"}, v1::POLICY_HOT, SampleTrial().dependencies());
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->size(), static_cast<size_t>(kVariants));
  for (const v1::Trial& trial : *known) {
    EXPECT_GT(std::stoi(trial.name().substr(7)), kTrials / 2) << "the second half has every problem again";
  }
}

}  // namespace
}  // namespace attune::store
