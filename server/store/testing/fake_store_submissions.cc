#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/submission_rules.h"
#include "server/store/testing/fake_store_state.h"
#include "server/store/testing/listing.h"

namespace attune::store {
namespace {

v1::Submission WithoutFiles(v1::Submission submission) {
  submission.clear_files();
  return submission;
}

}  // namespace

absl::StatusOr<v1::Submission> FakeStore::RecordSubmission(const v1::Submission& submission, const JobWrite& write) {
  if (absl::Status status = CheckSubmission(submission); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->append.ok()) return state_->append;
  const absl::StatusOr<std::string> name = queue().Once(write, [&]() -> absl::StatusOr<std::string> {
    int32_t last = 0;
    std::vector<int64_t> own;  // oldest first
    for (const auto& [id, other] : state_->submissions) {
      if (other.operation() == submission.operation()) return other.name();
    }
    for (const auto& [id, other] : state_->submissions) {
      if (other.principal() != submission.principal()) continue;
      if (other.loop() == submission.loop()) last = std::max(last, other.iteration());
      if (other.state() != v1::Submission::STATE_ADOPTED) own.push_back(id);
    }
    if (own.size() >= kMostSubmissions) state_->submissions.erase(own.front());
    v1::Submission& stored = state_->submissions[++state_->last_submission];
    stored = submission;
    stored.set_name(absl::StrCat("submissions/", state_->last_submission));
    stored.set_iteration(stored.loop().empty() ? 0 : last + 1);
    return stored.name();
  });
  if (!name.ok()) return name.status();
  for (const auto& [id, stored] : state_->submissions) {
    if (stored.name() == *name) return WithoutFiles(stored);
  }
  return NoSubmission(*name);
}

absl::StatusOr<v1::Submission> FakeStore::GetSubmission(absl::string_view name) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  for (const auto& [id, submission] : state_->submissions) {
    if (submission.name() == name) return submission;
  }
  return NoSubmission(name);
}

absl::StatusOr<Page<v1::Submission>> FakeStore::ListSubmissions(const SubmissionFilter& filter, int page_size,
                                                                absl::string_view page_token) {
  std::vector<Row<v1::Submission>> rows;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    for (auto it = state_->submissions.rbegin(); it != state_->submissions.rend(); ++it) {
      const v1::Submission& submission = it->second;
      if (fake::FitsText(filter.principal, submission.principal()) && fake::FitsText(filter.loop, submission.loop()) &&
          fake::FitsText(filter.content_hash, submission.content_hash()) &&
          (!filter.state.has_value() || filter.state == submission.state())) {
        rows.push_back({{it->first}, WithoutFiles(submission)});
      }
    }
  }
  return Cut(std::move(rows), NameOf(filter), page_size, page_token, IsOlder);
}

absl::StatusOr<v1::Submission> FakeStore::MoveSubmission(absl::string_view name, const SubmissionMove& move) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->append.ok()) return state_->append;
  for (auto& [id, submission] : state_->submissions) {
    if (submission.name() != name) continue;
    if (absl::Status status = CheckMove(submission, move); !status.ok()) return status;
    if (submission.state() != move.to) {
      submission.set_state(move.to);
      submission.set_state_principal(move.principal);
      *submission.mutable_state_time() = fake::Now();
    }
    return WithoutFiles(submission);
  }
  return NoSubmission(name);
}

}  // namespace attune::store
