#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Each of an operation of its own.
v1::Submission SampleSubmission(const std::string& hash = "4f0c", const std::string& loop = "tiles") {
  static int operations = 0;
  v1::Submission submission;
  submission.set_content_hash(hash);
  submission.set_family("submitted_" + hash);
  submission.set_principal("token:ada");
  submission.set_loop(loop);
  submission.set_hypothesis("fewer bank conflicts");
  submission.add_problems(kProblem);
  submission.set_device_id(kDevice);
  submission.set_policy(v1::POLICY_HOT);
  submission.set_state(v1::Submission::STATE_PRIVATE);
  submission.mutable_create_time()->set_seconds(1'800'000'000);
  submission.set_operation(absl::StrCat("operations/", ++operations));
  submission.mutable_result()->set_decision(v1::SubmitResult::DECISION_KEEP);
  v1::SourceFile& file = *submission.add_files();
  file.set_path("kernel.cl");
  file.set_text("__kernel void k() {} // \xff");
  return submission;
}

class SubmissionContract : public StoreContract {
 protected:
  v1::Submission Record(const v1::Submission& submission) {
    absl::StatusOr<v1::Submission> recorded = store().RecordSubmission(submission, {});
    EXPECT_TRUE(recorded.ok()) << recorded.status();
    return recorded.value_or(v1::Submission());
  }

  std::vector<std::string> List(const SubmissionFilter& filter) {
    std::vector<std::string> names;
    std::string token;
    do {
      const absl::StatusOr<Page<v1::Submission>> page = store().ListSubmissions(filter, 2, token);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const v1::Submission& submission : page->items) {
        EXPECT_THAT(submission.files(), IsEmpty());
        names.push_back(submission.name());
      }
      token = page->next_page_token;
    } while (!token.empty());
    return names;
  }
};

TEST_P(SubmissionContract, SurvivesReopeningAsItWasRecorded) {
  v1::Submission submission = SampleSubmission();
  submission.set_name(Record(submission).name());
  submission.set_iteration(1);
  EXPECT_EQ(submission.name(), "submissions/1");
  Reopen();
  const absl::StatusOr<v1::Submission> stored = store().GetSubmission(submission.name());
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*stored, submission)) << stored->DebugString();
}

TEST_P(SubmissionContract, CountsTheIterationsOfEachPrincipalsLoop) {
  EXPECT_EQ(Record(SampleSubmission("a")).iteration(), 1);
  EXPECT_EQ(Record(SampleSubmission("b")).iteration(), 2);
  EXPECT_EQ(Record(SampleSubmission("c", "stages")).iteration(), 1);
  EXPECT_EQ(Record(SampleSubmission("d", "")).iteration(), 0);
  v1::Submission other = SampleSubmission("e");
  other.set_principal("token:grace");
  EXPECT_EQ(Record(other).iteration(), 1);
  EXPECT_EQ(Record(SampleSubmission("a")).iteration(), 3) << "the same content again is another iteration";
}

TEST_P(SubmissionContract, AreListedByFilterNewestFirst) {
  for (const char* hash : {"a", "b", "a"}) Record(SampleSubmission(hash));
  v1::Submission other = SampleSubmission("c", "stages");
  other.set_principal("token:grace");
  Record(other);
  EXPECT_THAT(List({}), ElementsAre("submissions/4", "submissions/3", "submissions/2", "submissions/1"));
  EXPECT_THAT(List({.loop = "tiles"}), ElementsAre("submissions/3", "submissions/2", "submissions/1"));
  EXPECT_THAT(List({.principal = "token:grace"}), ElementsAre("submissions/4"));
  EXPECT_THAT(List({.content_hash = "a"}), ElementsAre("submissions/3", "submissions/1"));
  EXPECT_THAT(List({.state = v1::Submission::STATE_ADOPTED}), IsEmpty());
  const std::string token = store().ListSubmissions({.loop = "tiles"}, 1, "")->next_page_token;
  EXPECT_EQ(store().ListSubmissions({}, 1, token).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(SubmissionContract, IsAdoptedAndWithdrawnOnce) {
  const std::string name = Record(SampleSubmission()).name();
  const auto adopted = store().MoveSubmission(name, {v1::Submission::STATE_ADOPTED, "uid:0"});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->state(), v1::Submission::STATE_ADOPTED);
  EXPECT_EQ(adopted->state_principal(), "uid:0");
  EXPECT_EQ(store().MoveSubmission(name, {v1::Submission::STATE_ADOPTED, "uid:1"})->state_principal(), "uid:0");
  Reopen();
  EXPECT_THAT(List({.state = v1::Submission::STATE_ADOPTED}), ElementsAre(name));
  ASSERT_TRUE(store().MoveSubmission(name, {v1::Submission::STATE_WITHDRAWN, "uid:0"}).ok());
  const absl::Status again = store().MoveSubmission(name, {v1::Submission::STATE_ADOPTED, "uid:0"}).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store().GetSubmission(name)->state(), v1::Submission::STATE_WITHDRAWN);
  EXPECT_EQ(store().GetSubmission(name)->files_size(), 1);
}

TEST_P(SubmissionContract, IsNotAdoptedUnlessItWasKept) {
  v1::Submission slow = SampleSubmission();
  slow.mutable_result()->set_decision(v1::SubmitResult::DECISION_REVERT);
  slow.mutable_result()->set_reason("12 % slower");
  const std::string name = Record(slow).name();
  const absl::Status status = store().MoveSubmission(name, {v1::Submission::STATE_ADOPTED, "uid:0"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("12 % slower"));
  EXPECT_EQ(store().MoveSubmission("submissions/9", {v1::Submission::STATE_ADOPTED, ""}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(store().GetSubmission("submissions/9").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().GetSubmission("nine").status().code(), absl::StatusCode::kNotFound);
}

// A job that was interrupted between its submission and its end.
TEST_P(SubmissionContract, OfAnOperationIsOne) {
  const v1::Submission submission = SampleSubmission();
  EXPECT_EQ(Record(submission).name(), Record(submission).name());
  EXPECT_EQ(List({}).size(), 1U);
}

// What is adopted stays, whoever submits more.
TEST_P(SubmissionContract, KeepsTheNewestOfAPrincipalAndWhatIsAdopted) {
  const std::string adopted = Record(SampleSubmission("kept")).name();
  ASSERT_TRUE(store().MoveSubmission(adopted, {v1::Submission::STATE_ADOPTED, "uid:0"}).ok());
  const std::string oldest = Record(SampleSubmission("oldest")).name();
  v1::Submission other = SampleSubmission("other");
  other.set_principal("token:grace");
  const std::string others = Record(other).name();
  for (int i = 0; i < kMostSubmissions - 1; ++i) Record(SampleSubmission("same"));
  EXPECT_TRUE(store().GetSubmission(oldest).ok());
  Record(SampleSubmission("same"));
  EXPECT_EQ(store().GetSubmission(oldest).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store().GetSubmission(adopted).ok());
  EXPECT_TRUE(store().GetSubmission(others).ok());
}

TEST_P(SubmissionContract, NamesWhatIsMissing) {
  const auto refused = [this](auto change) {
    v1::Submission submission = SampleSubmission();
    change(submission);
    const absl::Status status = store().RecordSubmission(submission, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refused([](v1::Submission& s) { s.clear_content_hash(); }), HasSubstr("content_hash is not set"));
  EXPECT_THAT(refused([](v1::Submission& s) { s.clear_files(); }), HasSubstr("files is not set"));
  EXPECT_THAT(refused([](v1::Submission& s) { s.clear_principal(); }), HasSubstr("principal is not set"));
  EXPECT_THAT(refused([](v1::Submission& s) { s.clear_state(); }), HasSubstr("state is not set"));
  EXPECT_THAT(List({}), IsEmpty());
}

TEST_P(SubmissionContract, IsMadeOnceAndRefusedFromAStaleHolder) {
  Job job;
  job.name = "operations/a";
  job.kind = JobKind::kSubmit;
  job.operation.set_name(job.name);
  ASSERT_TRUE(store().queue().Create(job, {}).ok());
  const int64_t epoch = (*store().queue().Lease(job.name, "one", absl::Minutes(1)))->epoch;
  const JobWrite write = NewWrite({job.name, epoch});
  const auto recorded = store().RecordSubmission(SampleSubmission(), write);
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(store().RecordSubmission(SampleSubmission(), write)->name(), recorded->name());
  ASSERT_TRUE(store().queue().Lease(job.name, "one", absl::Minutes(1)).ok());
  EXPECT_TRUE(IsStale(store().RecordSubmission(SampleSubmission(), NewWrite({job.name, epoch})).status()));
  EXPECT_THAT(List({}), ElementsAre("submissions/1"));
}

INSTANTIATE_TEST_SUITE_P(Store, SubmissionContract, testing::ValuesIn(Implementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
