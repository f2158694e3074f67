#include "server/store/copy/testing/day.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/sha256.h"
#include "server/store/copy/testing/day_answers.h"
#include "server/store/rows/names.h"
#include "server/store/testing/store_contract.h"

namespace attune::store::copy {
namespace {

constexpr absl::Duration kStep = absl::Seconds(20);

}  // namespace

std::string ProblemOfDay(int number) { return absl::StrCat("b1.h8.q", 64 * (number + 1), ".d64.f16"); }

Day::Day(std::vector<Store*> stores, uint32_t seed)
    : stores_(std::move(stores)), random_(seed), begin_(absl::Now() - absl::Hours(24)) {}

std::string Day::Ask(absl::string_view what, const Call& call) {
  std::string first;
  for (size_t i = 0; i < stores_.size(); ++i) {
    const std::string answer = call(*stores_[i]);
    if (i == 0) {
      first = answer;
    } else {
      EXPECT_EQ(answer, first) << "operation " << done_ << ", " << what << ", of store " << i;
    }
  }
  return first;
}

void Day::SetNow(google::protobuf::Timestamp* time) const {
  *time = FromNanoseconds(absl::ToUnixNanos(begin_ + done_ * kStep));
}

JobWrite Day::WriteOf(const MadeJob* job) {
  if (job == nullptr) return {};
  return {.fence = {job->name, job->epoch}, .id = ++writes_};
}

void Day::Work(int operations) {
  for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
    ++done_;
    DoOne();
  }
}

void Day::DoOne() {
  const std::pair<int, void (Day::*)()> kinds[] = {
      {40, &Day::AppendTrial}, {10, &Day::Promote},       {2, &Day::RollBack},    {1, &Day::Unpin},
      {1, &Day::Retry},        {4, &Day::Report},         {5, &Day::Retime},      {4, &Day::RecordBaseline},
      {5, &Day::PutArtifact},  {1, &Day::ForgetFailures}, {3, &Day::Submit},      {1, &Day::MoveSubmission},
      {6, &Day::PutBlob},      {3, &Day::ReadBlob},       {1, &Day::DeleteBlobs}, {5, &Day::CreateJob},
      {8, &Day::WorkOnJob},    {3, &Day::LookUp},         {1, &Day::Retain}};
  int all = 0;
  for (const auto& [share, operation] : kinds) all += share;
  int drawn = Draw(all);
  for (const auto& [share, operation] : kinds) {
    if (drawn < share) return (this->*operation)();
    drawn -= share;
  }
}

void Day::PutBlob() {
  v1::Blob blob;
  blob.set_principal(Chance(50) ? "token:ci" : "token:ada");
  blob.set_namespace_(Chance(50) ? "triton" : "helion");
  blob.set_key(absl::StrCat("K", Draw(6)));
  blob.set_file(absl::StrCat("kernel", Draw(3)));
  blob.set_shared(Chance(30));
  blob.set_data(Chance(5) ? std::string() : std::string(1 + Draw(9000), static_cast<char>('a' + Draw(20))));
  Ask("put", [&](Store& store) {
    const absl::StatusOr<v1::Blob> put = store.blobs().Put(blob);
    return put.ok() ? put->sha256() : CodeOf(put.status());
  });
}

void Day::ReadBlob() {
  const BlobGroup group = {
      Chance(50) ? "token:ci" : "token:ada", "triton", absl::StrCat("K", Draw(6)), {"kernel0", "kernel1"}};
  Ask("read", [&](Store& store) -> std::string {
    const absl::StatusOr<std::vector<v1::Blob>> found = store.blobs().Find(group);
    if (!found.ok()) return CodeOf(found.status());
    std::string all;
    for (const v1::Blob& blob : *found) absl::StrAppend(&all, Sha256(store.blobs().Read(blob).value_or("")), "\n");
    return all;
  });
}

void Day::DeleteBlobs() {
  const BlobFilter filter = {.principal = "token:ci", .key = absl::StrCat("K", Draw(6))};
  Ask("delete", [&](Store& store) {
    const absl::StatusOr<RemovedBlobs> removed = store.blobs().Delete(filter);
    return removed.ok() ? absl::StrCat(removed->blobs, " ", removed->bytes) : CodeOf(removed.status());
  });
}

void Day::CreateJob() {
  Job job;
  job.name = absl::StrCat("operations/", ++made_jobs_);
  const MadeJob* parent = nullptr;
  if (!unfinished_.empty() && Chance(30)) parent = &unfinished_[Draw(unfinished_.size())];
  if (parent != nullptr && parent->parent.empty()) job.parent = parent->name;
  job.kind = job.parent.empty() ? JobKind::kTune : JobKind::kSweepProblem;
  job.request = absl::StrCat(std::string("\0request ", 9), Draw(10));
  if (Chance(40)) job.request_id = absl::StrCat("request ", Draw(200));
  job.identity = job.parent.empty() ? absl::StrCat("identity \xff", Draw(30)) : absl::StrCat("part ", job.name);
  job.operation.set_name(job.name);
  job.operation.set_state(v1::Operation::STATE_QUEUED);
  // Of some there is no trial yet.
  job.operation.set_problem(Chance(10) ? absl::StrCat("b9.h1.q", Draw(5), ".d64.f16") : Problem());
  SetNow(job.operation.mutable_create_time());
  const std::string made = Ask("create", [&](Store& store) { return Describe(store.queue().Create(job, {})); });
  if (made.rfind(job.name + " ", 0) == 0) unfinished_.push_back({job.name, job.parent});
}

void Day::WorkOnJob() {
  if (unfinished_.empty()) return;
  const size_t at = Draw(unfinished_.size());
  MadeJob& job = unfinished_[at];
  const std::string name = job.name;
  const Fence fence = {name, job.epoch};
  v1::Operation operation;
  operation.set_name(name);
  operation.set_state(v1::Operation::STATE_RUNNING);
  operation.set_title(absl::StrCat("after ", done_));
  switch (Draw(6)) {
    case 0:
    case 1: {
      const std::string epoch = Ask("lease", [&](Store& store) {
        const auto leased = store.queue().Lease(name, kHolder, absl::Hours(100));
        return leased.ok() && leased->has_value() ? absl::StrCat((*leased)->epoch) : CodeOf(leased.status());
      });
      if (epoch != "OK" && epoch.find_first_not_of("0123456789") == std::string::npos) job.epoch = std::stoll(epoch);
      return;
    }
    case 2:
      Ask("update", [&](Store& store) { return CodeOf(store.queue().Update(fence, operation)); });
      return;
    case 3:
      Ask("requeue", [&](Store& store) { return CodeOf(store.queue().Requeue(fence)); });
      return;
    case 4:
      Ask("cancel", [&](Store& store) { return Describe(store.queue().Cancel(name)); });
      return;
    default:
      End(job);
  }
}

// With its parts: no store forgets one before the other.
void Day::End(MadeJob job) {
  std::vector<MadeJob> ending;
  for (const MadeJob& other : unfinished_) {
    if (other.parent == job.name) ending.push_back(other);
  }
  ending.push_back(job);
  for (const MadeJob& each : ending) {
    v1::Operation operation;
    operation.set_name(each.name);
    operation.set_state(v1::Operation::STATE_SUCCEEDED);
    operation.set_done(true);
    SetNow(operation.mutable_end_time());
    Ask("end", [&](Store& store) -> std::string {
      const auto leased = store.queue().Lease(each.name, kHolder, absl::Hours(100));
      if (!leased.ok()) return CodeOf(leased.status());
      if (!leased->has_value()) return "not to be had";
      return CodeOf(store.queue().Finish({each.name, (*leased)->epoch}, operation));
    });
    std::erase_if(unfinished_, [&each](const MadeJob& other) { return other.name == each.name; });
  }
}

void Day::LookUp() {
  const v1::Trial like = SampleTrial(16 * (1 + Draw(12)));
  const std::string problem = Problem();
  Ask("find", [&](Store& store) {
    TrialKey key = KeyOf(like);
    key.problem_text = problem;
    return TextOr(store.FindTrial(key));
  });
}

void Day::Retain() {
  Retention retention;
  retention.now = begin_ + done_ * kStep;
  if (Chance(60)) retention.trial_age = absl::Hours(1 + Draw(6));
  if (Chance(60)) retention.job_age = absl::Hours(1 + Draw(6));
  if (Chance(60)) retention.retiming_age = absl::Hours(1 + Draw(6));
  retention.current.push_back(SampleTrial().dependencies());
  // Twice: PostgreSQL's store forgets a job in the pass after that of its parts.
  Ask("retain", [&](Store& store) -> std::string {
    Retained all;
    for (int pass = 0; pass < 2; ++pass) {
      const absl::StatusOr<Retained> retained = store.Retain(retention, [] { return false; });
      if (!retained.ok()) return retained.status().ToString();
      all.removed_trials += retained->removed_trials;
      all.removed_jobs += retained->removed_jobs;
      all.removed_retimings += retained->removed_retimings;
      all.removed_compiles += retained->removed_compiles;
      all.removed_artifacts += retained->removed_artifacts;
    }
    return absl::StrCat(all.removed_trials, " trials, ", all.removed_jobs, " jobs, ", all.removed_retimings,
                        " retimings, ", all.removed_compiles, " compiles, ", all.removed_artifacts, " artifacts");
  });
}

}  // namespace attune::store::copy
