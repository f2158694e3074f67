#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/store/testing/queue_contract.h"

namespace attune::store {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::IsEmpty;

class JobContract : public QueueContractTest {
 protected:
  static Job Make(const std::string& name, const std::string& request_id = "") {
    Job job;
    job.name = name;
    job.kind = JobKind::kSweep;
    job.request = std::string("\0request", 8);
    job.request_id = request_id;
    job.operation.set_name(name);
    job.operation.set_state(v1::Operation::STATE_QUEUED);
    job.operation.set_title("sweep of 12 problems");
    return job;
  }

  void Finish(const std::string& name) {
    v1::Operation operation;
    operation.set_name(name);
    operation.set_state(v1::Operation::STATE_SUCCEEDED);
    FinishJob(queue(), operation);
  }

  std::vector<std::string> List(bool active_only) { return List(JobFilter{.active_only = active_only}); }
  std::vector<std::string> List(const JobFilter& filter) {
    std::vector<std::string> names;
    std::string token;
    do {
      absl::StatusOr<Page<v1::Operation>> page = queue().List(filter, 1, token);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const v1::Operation& operation : page->items) names.push_back(operation.name());
      token = page->next_page_token;
    } while (!token.empty());
    return names;
  }
};

TEST_P(JobContract, SurvivesReopeningAsItWasCreated) {
  const Job job = Make("operations/a", "nightly");
  ASSERT_TRUE(queue().Create(job, {}).ok());
  Reopen();
  absl::StatusOr<Job> stored = queue().Get("operations/a");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->name, job.name);
  EXPECT_EQ(stored->kind, JobKind::kSweep);
  EXPECT_EQ(stored->request, job.request);
  EXPECT_EQ(stored->request_id, "nightly");
  EXPECT_TRUE(MessageDifferencer::Equals(stored->operation, job.operation));
}

TEST_P(JobContract, ReturnsTheFormerJobForItsRequestId) {
  ASSERT_TRUE(queue().Create(Make("operations/a", "nightly"), {}).ok());
  absl::StatusOr<Job> again = queue().Create(Make("operations/b", "nightly"), {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->name, "operations/a");
  EXPECT_EQ(queue().Get("operations/b").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(JobContract, TakesAnyNumberOfJobsWithoutRequestId) {
  ASSERT_TRUE(queue().Create(Make("operations/a"), {}).ok());
  absl::StatusOr<Job> second = queue().Create(Make("operations/b"), {});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->name, "operations/b");
  EXPECT_EQ(queue().Get("operations/b")->request_id, "");
}

TEST_P(JobContract, RefusesANameThatIsTaken) {
  ASSERT_TRUE(queue().Create(Make("operations/a", "one"), {}).ok());
  EXPECT_EQ(queue().Create(Make("operations/a", "two"), {}).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_P(JobContract, ReturnsTheLastUpdate) {
  ASSERT_TRUE(queue().Create(Make("operations/a"), {}).ok());
  Finish("operations/a");
  EXPECT_EQ(queue().Get("operations/a")->operation.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(queue().Update({"operations/none", 1}, {}).code(), absl::StatusCode::kNotFound);
}

TEST_P(JobContract, ListsOperationsNewestFirst) {
  for (const char* name : {"operations/c", "operations/a", "operations/b"}) {
    ASSERT_TRUE(queue().Create(Make(name), {}).ok());
  }
  Finish("operations/a");
  EXPECT_THAT(List(false), ElementsAre("operations/b", "operations/a", "operations/c"));
  EXPECT_THAT(List(true), ElementsAre("operations/b", "operations/c"));
  EXPECT_EQ(queue().List({.active_only = true}, 1, "nonsense").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(JobContract, ListsTheOperationsOfOneProblem) {
  for (const auto& [name, problem] :
       {std::pair("operations/a", "b1.h1.q128.d64.f16"), std::pair("operations/b", "b1.h1.q256.d64.f16"),
        std::pair("operations/c", "b1.h1.q128.d64.f16"), std::pair("operations/d", "")}) {
    Job job = Make(name);
    job.operation.set_problem(problem);
    ASSERT_TRUE(queue().Create(job, {}).ok());
  }
  Finish("operations/a");
  EXPECT_THAT(List(JobFilter{.problem_text = "b1.h1.q128.d64.f16"}), ElementsAre("operations/c", "operations/a"));
  EXPECT_THAT(List(JobFilter{.active_only = true, .problem_text = "b1.h1.q128.d64.f16"}), ElementsAre("operations/c"));
  EXPECT_THAT(List(JobFilter{.problem_text = "b1.h1.q512.d64.f16"}), IsEmpty());
}

TEST_P(JobContract, ListsTheOperationsOfOneKind) {
  for (const auto& [name, kind] :
       {std::pair("operations/a", JobKind::kTune), std::pair("operations/b", JobKind::kSweep),
        std::pair("operations/c", JobKind::kTune)}) {
    Job job = Make(name);
    job.kind = kind;
    ASSERT_TRUE(queue().Create(job, {}).ok());
  }
  EXPECT_THAT(List(JobFilter{.kind = JobKind::kSweep}), ElementsAre("operations/b"));
  EXPECT_THAT(List(JobFilter{.kind = JobKind::kTune}), ElementsAre("operations/c", "operations/a"));
  const auto first = queue().List({.kind = JobKind::kTune}, 1, "");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(queue().List({.kind = JobKind::kSweep}, 1, first->next_page_token).status().code(),
            absl::StatusCode::kInvalidArgument)
      << "a token is of its own listing";
}

INSTANTIATE_TEST_SUITE_P(Store, JobContract, testing::ValuesIn(QueueImplementations()), QueueImplementationName);

}  // namespace
}  // namespace attune::store
