#include "server/submit/submissions.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/testing/fake_host.h"
#include "server/store/testing/fake_store.h"
#include "server/submit/package.h"

namespace attune::submit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Reader kAda = {"token:ada"};
const Reader kGrace = {"token:grace"};
const Reader kAdmin = {"uid:0", true};

class SubmissionsTest : public ::testing::Test {
 protected:
  static v1::SubmitRequest RequestOf(const std::string& text = "") {
    v1::SubmitRequest request;
    *request.add_problems() = ToProto(*ParseProblem("b1.h1.q128.d64.f16"));
    v1::SourceFile& file = *request.add_files();
    file.set_path("mine.cu");
    file.set_text(absl::StrCat("/* attune\nlaunches { entry: \"mine\" main: true grid_x: \"seq_q\" }\n*/\n", text));
    return request;
  }

  // As a job records it.
  v1::Submission Record(const std::string& text = "",
                        v1::SubmitResult::Decision decision = v1::SubmitResult::DECISION_KEEP,
                        const Reader& author = kAda) {
    v1::Submission submission;
    *submission.mutable_files() = RequestOf(text).files();
    const auto package = ReadPackage(submission.files());
    submission.set_content_hash(package->content_hash);
    submission.set_family(package->manifest.name());
    submission.set_principal(author.principal);
    submission.set_loop("tiles");
    submission.set_operation(absl::StrCat("operations/", ++operations_));
    submission.set_state(v1::Submission::STATE_PRIVATE);
    submission.mutable_result()->set_decision(decision);
    return store_.RecordSubmission(submission, {}).value();
  }

  bool IsFamily(const v1::Submission& submission) const {
    for (const auto& family : host_.families.Now()) {
      if (family->name() == submission.family()) return true;
    }
    return false;
  }

  std::string Refused(const v1::SubmitRequest& request, const Reader& reader = kAda) {
    v1::SubmitRequest checked = request;
    const absl::Status status = submissions_.Check(checked, reader);
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }

  std::vector<std::string> NamesFor(const Reader& reader, const std::string& loop = "") {
    v1::ListSubmissionsRequest request;
    request.set_loop(loop);
    std::vector<std::string> names;
    const auto page = submissions_.List(request, 10, reader);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return names;
    for (const v1::Submission& one : page->items) names.push_back(one.name());
    return names;
  }

  int operations_ = 0;
  store::FakeStore store_;
  catalog::Host host_ = catalog::FakeHost();
  Submissions submissions_{store_, host_, "/nonexistent"};
};

TEST_F(SubmissionsTest, FillInTheDeviceThatTheKernelRunsOn) {
  v1::SubmitRequest request = RequestOf();
  ASSERT_TRUE(submissions_.Check(request, kAda).ok());
  EXPECT_EQ(request.device_id(), "cuda:0");
  EXPECT_EQ(request.base(), "incumbent");
  request = RequestOf();
  request.mutable_files(0)->set_path("mine.cl");
  EXPECT_THAT(Refused(request), HasSubstr("no device of it"));
}

TEST_F(SubmissionsTest, NameWhatIsWrongWithARequest) {
  v1::SubmitRequest request = RequestOf();
  request.clear_problems();
  EXPECT_THAT(Refused(request), HasSubstr("problems has 0 entries; allowed: 1 to 8"));
  request = RequestOf();
  request.set_loop("a/b");
  EXPECT_THAT(Refused(request), HasSubstr("loop is 'a/b'; allowed: 1 to 64 letters"));
  request = RequestOf();
  request.set_base("previous");
  EXPECT_THAT(Refused(request), HasSubstr("loop is empty"));
  request.set_base("best");
  EXPECT_THAT(Refused(request), HasSubstr("base is 'best'; allowed: incumbent, previous, or a submission"));
  request.set_base(Record().name());
  EXPECT_THAT(Refused(request), HasSubstr("which is this very content"));
  request = RequestOf("#include \"/etc/passwd\"\n");
  EXPECT_THAT(Refused(request), HasSubstr("mine.cu:4: #include '/etc/passwd' is not relative"));
}

TEST_F(SubmissionsTest, AreTheirAuthorsAloneUntilTheyAreAdopted) {
  const v1::Submission own = Record();
  EXPECT_EQ(submissions_.Get(own.name(), kAda)->files_size(), 1);
  EXPECT_EQ(submissions_.Get(own.name(), kAdmin)->files_size(), 1);
  EXPECT_EQ(submissions_.Get(own.name(), kGrace).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(NamesFor(kGrace), IsEmpty());
  EXPECT_THAT(NamesFor(kAda, "tiles"), ElementsAre(own.name()));
  EXPECT_THAT(NamesFor(kGrace, "tiles"), IsEmpty());
  EXPECT_THAT(NamesFor(kAdmin), ElementsAre(own.name()));
  v1::SubmitRequest request = RequestOf("// other\n");
  request.set_base(own.name());
  EXPECT_THAT(Refused(request, kGrace), HasSubstr("does not exist"));
  ASSERT_TRUE(submissions_.Adopt(own.name(), kAdmin).ok());
  EXPECT_EQ(submissions_.Get(own.name(), kGrace)->files_size(), 1);
  EXPECT_THAT(NamesFor(kGrace), ElementsAre(own.name()));
}

TEST_F(SubmissionsTest, BecomeAFamilyWhenTheyAreAdoptedAlsoAfterARestart) {
  const v1::Submission submission = Record();
  EXPECT_FALSE(IsFamily(submission));
  const auto adopted = submissions_.Adopt(submission.name(), kAdmin);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->state_principal(), "uid:0");
  EXPECT_TRUE(IsFamily(submission));
  host_ = catalog::FakeHost();
  EXPECT_FALSE(IsFamily(submission));
  ASSERT_TRUE(submissions_.AddAdopted().ok());
  EXPECT_TRUE(IsFamily(submission));
}

TEST_F(SubmissionsTest, ThatWereRevertedAreNotAdopted) {
  const v1::Submission slow = Record("", v1::SubmitResult::DECISION_REVERT);
  EXPECT_EQ(submissions_.Adopt(slow.name(), kAdmin).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(IsFamily(slow));
  EXPECT_EQ(submissions_.Adopt("submissions/9", kAdmin).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SubmissionsTest, AreWithdrawnByTheirAuthorOrAnAdmin) {
  const v1::Submission own = Record();
  EXPECT_EQ(submissions_.Withdraw(own.name(), kGrace).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(submissions_.Withdraw(own.name(), kAda)->state(), v1::Submission::STATE_WITHDRAWN);
  const v1::Submission adopted = Record("// two\n");
  ASSERT_TRUE(submissions_.Adopt(adopted.name(), kAdmin).ok());
  EXPECT_EQ(submissions_.Withdraw(adopted.name(), kAda).status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(submissions_.Withdraw(adopted.name(), kAdmin).ok());
  EXPECT_FALSE(IsFamily(adopted));
  ASSERT_TRUE(submissions_.AddAdopted().ok());
  EXPECT_FALSE(IsFamily(adopted));
}

TEST_F(SubmissionsTest, StayAdoptedWhileTheyAreServed) {
  const v1::Submission submission = Record();
  ASSERT_TRUE(submissions_.Adopt(submission.name(), kAdmin).ok());
  v1::Trial trial;
  trial.set_problem_text("b1.h1.q128.d64.f16");
  trial.set_device_id("cuda:0");
  trial.mutable_variant()->set_family(submission.family());
  trial.mutable_variant()->set_text(absl::StrCat(submission.family(), ":"));
  trial.set_policy(v1::POLICY_HOT);
  trial.set_verdict(v1::VERDICT_OK);
  trial.mutable_dependencies()->set_device_fingerprint("an L4");
  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(store_.AppendTrial(trial, {}).value());
  ASSERT_TRUE(store_.Promote(incumbent, "", {}).ok());
  const absl::Status status = submissions_.Withdraw(submission.name(), kAdmin).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is served for b1.h1.q128.d64.f16; `attune rollback`"));
  EXPECT_TRUE(IsFamily(submission));
}

}  // namespace
}  // namespace attune::submit
