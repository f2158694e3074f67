#include "server/submit/submissions.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/quote.h"
#include "server/base/log.h"
#include "server/store/page_token.h"
#include "server/store/submission_rules.h"
#include "server/submit/limits.h"
#include "server/submit/package.h"

namespace attune::submit {
namespace {

constexpr size_t kMostLoop = 64;

bool MayRead(const v1::Submission& submission, const Reader& reader) {
  return reader.admin || submission.principal() == reader.principal ||
         submission.state() == v1::Submission::STATE_ADOPTED;
}

absl::Status CheckLoop(const std::string& loop) {
  const auto allowed = [](char c) { return absl::ascii_isalnum(c) || absl::StrContains("-_.", c); };
  if (loop.size() <= kMostLoop && std::all_of(loop.begin(), loop.end(), allowed)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("loop is ", Quoted(loop), "; allowed: 1 to ", kMostLoop,
                                                 " letters, digits, '-', '_' and '.', or nothing"));
}

}  // namespace

void Submissions::AddFamily(const v1::Submission& submission) {
  auto family = FamilyOf(submission.files(), library_);
  if (family.ok()) {
    host_.families.Add(*std::move(family));
  } else {
    LogError("an adopted submission is no kernel family any more",
             {{"submission", submission.name()}, {"reason", family.status().message()}});
  }
}

absl::Status Submissions::AddAdopted() {
  const std::lock_guard<std::mutex> one(moving_);
  return AddAdoptedLocked();
}

void Submissions::AddCopied(const served::v1::Copy& copy) {
  const std::lock_guard<std::mutex> one(moving_);
  for (const v1::Submission& submission : copy.adopted()) AddFamily(submission);
}

absl::Status Submissions::ReadAnew(const served::v1::Copy& copy) {
  const std::lock_guard<std::mutex> one(moving_);
  if (absl::Status added = AddAdoptedLocked(); !added.ok()) return added;
  for (const v1::Submission& submission : copy.adopted()) {
    if (absl::Status removed = RemoveUnlessAdopted(submission); !removed.ok()) return removed;
  }
  return absl::OkStatus();
}

absl::Status Submissions::RemoveUnlessAdopted(const v1::Submission& submission) {
  // Of the same content another may be adopted.
  const auto adopted = store_.ListSubmissions(
      {.content_hash = submission.content_hash(), .state = v1::Submission::STATE_ADOPTED}, 1, "");
  if (adopted.ok() && adopted->items.empty()) host_.families.Remove(submission.family());
  return adopted.status();
}

absl::Status Submissions::AddAdoptedLocked() {
  std::string token;
  do {
    const auto page = store_.ListSubmissions({.state = v1::Submission::STATE_ADOPTED}, store::kMostPageSize, token);
    if (!page.ok()) return page.status();
    for (const v1::Submission& listed : page->items) {
      const absl::StatusOr<v1::Submission> submission = store_.GetSubmission(listed.name());
      if (absl::IsNotFound(submission.status())) continue;  // gone since it was listed
      if (!submission.ok()) return submission.status();
      AddFamily(*submission);
    }
    token = page->next_page_token;
  } while (!token.empty());
  return absl::OkStatus();
}

absl::Status Submissions::CheckBase(v1::SubmitRequest& request, const Reader& reader,
                                    const std::string& content_hash) const {
  if (request.base().empty()) request.set_base("incumbent");
  if (request.base() == "incumbent") return absl::OkStatus();
  if (request.base() == "previous") {
    if (!request.loop().empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("base is 'previous', which is the one before in a loop, but loop is empty");
  }
  if (!absl::StartsWith(request.base(), "submissions/")) {
    return absl::InvalidArgumentError(absl::StrCat("base is ", Quoted(request.base()),
                                                   "; allowed: incumbent, previous, or a submission, submissions/7"));
  }
  const absl::StatusOr<v1::Submission> base = Get(request.base(), reader);
  if (!base.ok()) return base.status();
  if (base->content_hash() != content_hash) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("base is ", request.base(), ", which is this very content"));
}

absl::Status Submissions::Check(v1::SubmitRequest& request, const Reader& reader) const {
  if (request.problems().empty() || request.problems_size() > kMostProblems) {
    return absl::InvalidArgumentError(
        absl::StrCat("problems has ", request.problems_size(), " entries; allowed: 1 to ", kMostProblems));
  }
  if (absl::Status status = CheckLoop(request.loop()); !status.ok()) return status;
  const absl::StatusOr<Package> package = ReadPackage(request.files());
  if (!package.ok()) return package.status();
  if (const auto family = FamilyOf(*package, library_); !family.ok()) return family.status();
  if (absl::Status status = CheckBase(request, reader, package->content_hash); !status.ok()) return status;
  if (!request.device_id().empty()) return absl::OkStatus();
  for (const v1::Device& device : host_.devices) {
    if (device.backend() != package->manifest.backend()) continue;
    request.set_device_id(device.id());
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("the kernel is for ", v1::Backend_Name(package->manifest.backend()),
                                                    ", and this host has no device of it"));
}

absl::StatusOr<v1::Submission> Submissions::Get(absl::string_view name, const Reader& reader) const {
  absl::StatusOr<v1::Submission> submission = store_.GetSubmission(name);
  if (!submission.ok() || MayRead(*submission, reader)) return submission;
  return store::NoSubmission(name);
}

absl::StatusOr<store::Page<v1::Submission>> Submissions::List(const v1::ListSubmissionsRequest& request, int page_size,
                                                              const Reader& reader) const {
  store::SubmissionFilter filter{
      .principal = request.principal(), .loop = request.loop(), .content_hash = request.content_hash()};
  if (filter.principal.empty() && !filter.loop.empty()) filter.principal = reader.principal;
  auto page = store_.ListSubmissions(filter, page_size, request.page_token());
  // A page may have fewer of them than there are.
  if (page.ok()) std::erase_if(page->items, [&](const v1::Submission& one) { return !MayRead(one, reader); });
  return page;
}

absl::StatusOr<v1::Submission> Submissions::Adopt(absl::string_view name, const Reader& reader) {
  const std::lock_guard<std::mutex> one(moving_);
  const absl::StatusOr<v1::Submission> submission = store_.GetSubmission(name);
  if (!submission.ok()) return submission;
  auto family = FamilyOf(submission->files(), library_);
  if (!family.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " is no kernel family any more: ", family.status().message()));
  }
  absl::StatusOr<v1::Submission> adopted =
      store_.MoveSubmission(name, {v1::Submission::STATE_ADOPTED, reader.principal});
  if (adopted.ok()) host_.families.Add(*std::move(family));
  return adopted;
}

absl::Status Submissions::CheckNotServed(const v1::Submission& submission) const {
  std::vector<std::string> problems;
  std::string token;
  do {
    const auto page = store_.ListIncumbents({}, store::kMostPageSize, token);
    if (!page.ok()) return page.status();
    for (const v1::Incumbent& incumbent : page->items) {
      if (incumbent.trial().variant().family() == submission.family()) problems.push_back(incumbent.problem_text());
    }
    token = page->next_page_token;
  } while (!token.empty());
  if (problems.empty()) return absl::OkStatus();
  constexpr size_t kMostNamed = 5;
  const size_t others = problems.size() - std::min(problems.size(), kMostNamed);
  problems.resize(problems.size() - others);
  return absl::FailedPreconditionError(absl::StrCat(submission.name(), " is served for ", absl::StrJoin(problems, ", "),
                                                    others == 0 ? "" : absl::StrCat(" and ", others, " more"),
                                                    "; `attune rollback` or `attune serve` first"));
}

absl::StatusOr<v1::Submission> Submissions::Withdraw(absl::string_view name, const Reader& reader) {
  const std::lock_guard<std::mutex> one(moving_);
  const absl::StatusOr<v1::Submission> submission = Get(name, reader);
  if (!submission.ok()) return submission;
  const bool adopted = submission->state() == v1::Submission::STATE_ADOPTED;
  if (!reader.admin && (adopted || submission->principal() != reader.principal)) {
    return absl::PermissionDeniedError(absl::StrCat(
        name, adopted ? " is adopted; admins withdraw it" : " is another's; its author and admins withdraw it"));
  }
  if (adopted) {
    if (absl::Status status = CheckNotServed(*submission); !status.ok()) return status;
  }
  absl::StatusOr<v1::Submission> withdrawn =
      store_.MoveSubmission(name, {v1::Submission::STATE_WITHDRAWN, reader.principal});
  if (withdrawn.ok() && adopted) RemoveUnlessAdopted(*submission).IgnoreError();  // it is withdrawn all the same
  return withdrawn;
}

}  // namespace attune::submit
