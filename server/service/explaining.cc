// Explain: which trial a request means, and what bounds it.
#include <string>

#include "absl/strings/str_cat.h"
#include "server/catalog/explain.h"
#include "server/profile/subject.h"
#include "server/service/attune_service.h"
#include "server/service/calls.h"
#include "server/service/validate.h"

namespace attune::service {
namespace {

// Of this very problem: the trial of a near one explains that one, and a guess was never timed.
absl::StatusOr<std::string> TrialServed(const ServiceOptions& options, v1::GetBestRequest best) {
  if (absl::Status status = Validate(best, *options.host); !status.ok()) return status;
  best.clear_acceptable();
  for (const v1::Provenance own : {v1::PROVENANCE_EXACT, v1::PROVENANCE_TIE, v1::PROVENANCE_STALE}) {
    best.add_acceptable(own);
  }
  const auto answer = options.results->GetBest(best);
  if (absl::IsNotFound(answer.status())) {
    return absl::NotFoundError(absl::StrCat(answer.status().message(), "; `attune tune` tunes it"));
  }
  if (!answer.ok()) return answer.status();
  return answer->trial();
}

absl::StatusOr<std::string> TrialToExplain(const ServiceOptions& options, const submit::Reader& reader,
                                           v1::ExplainRequest request) {
  if (absl::Status status = Validate(request); !status.ok()) return status;
  switch (request.subject_case()) {
    case v1::ExplainRequest::kBest:
      return TrialServed(options, request.best());
    case v1::ExplainRequest::kSubmission: {
      const absl::StatusOr<v1::Submission> submission = options.submissions->Get(request.submission(), reader);
      if (!submission.ok()) return submission.status();
      return profile::TrialOf(*submission, request.has_submission_problem() ? &request.submission_problem() : nullptr,
                              "submission_problem");
    }
    default:
      return request.trial();
  }
}

}  // namespace

grpc::ServerUnaryReactor* AttuneServiceImpl::Explain(grpc::CallbackServerContext* context,
                                                     const v1::ExplainRequest* request, v1::ExplainResponse* response) {
  return Later(context, "Explain", *request, [this, context, request, response]() -> absl::Status {
    const absl::StatusOr<std::string> name = TrialToExplain(options_, ReaderOf(*context), *request);
    if (!name.ok()) return name.status();
    return Fill(catalog::ExplainStored(*name, *options_.store, *options_.host), response);
  });
}

}  // namespace attune::service
