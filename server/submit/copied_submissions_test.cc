#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/catalog/testing/fake_host.h"
#include "server/store/testing/fake_store.h"
#include "server/submit/package.h"
#include "server/submit/submissions.h"

namespace attune::submit {
namespace {

class CopiedSubmissionsTest : public ::testing::Test {
 protected:
  v1::Submission Record(const std::string& text) {
    v1::Submission submission;
    v1::SourceFile& file = *submission.add_files();
    file.set_path("mine.cu");
    file.set_text(absl::StrCat("/* attune\nlaunches { entry: \"mine\" main: true grid_x: \"seq_q\" }\n*/\n", text));
    const auto package = ReadPackage(submission.files());
    submission.set_content_hash(package->content_hash);
    submission.set_family(package->manifest.name());
    submission.set_principal("token:ada");
    submission.set_operation(absl::StrCat("operations/", text));
    submission.set_state(v1::Submission::STATE_PRIVATE);
    submission.mutable_result()->set_decision(v1::SubmitResult::DECISION_KEEP);
    return store_.RecordSubmission(submission, {}).value();
  }
  bool IsFamily(const v1::Submission& submission) const {
    for (const auto& family : host_.families.Now()) {
      if (family->name() == submission.family()) return true;
    }
    return false;
  }

  store::FakeStore store_;
  catalog::Host host_ = catalog::FakeHost();
};

TEST_F(CopiedSubmissionsTest, AreFamiliesUntilTheStoreSaysThatTheyAreWithdrawn) {
  served::v1::Copy copy;
  const v1::Submission kept = Record("kept");
  const v1::Submission withdrawn = Record("withdrawn");
  for (const v1::Submission& one : {kept, withdrawn}) *copy.add_adopted() = store_.GetSubmission(one.name()).value();
  ASSERT_TRUE(store_.MoveSubmission(kept.name(), {v1::Submission::STATE_ADOPTED, "uid:0"}).ok());
  Submissions submissions(store_, host_, "/nonexistent");
  submissions.AddCopied(copy);
  EXPECT_TRUE(IsFamily(kept));
  EXPECT_TRUE(IsFamily(withdrawn));
  ASSERT_TRUE(submissions.ReadAnew(copy).ok());
  EXPECT_TRUE(IsFamily(kept));
  EXPECT_FALSE(IsFamily(withdrawn));
}

}  // namespace
}  // namespace attune::submit
