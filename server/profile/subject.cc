#include "server/profile/subject.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/problem.h"
#include "proto/attune/quote.h"
#include "server/catalog/tuning_key.h"
#include "server/trials/tuning_key.h"

namespace attune::profile {
namespace {

// The device that a variant or what is served is looked for on.
absl::StatusOr<const v1::Device*> Device(const std::string& name, const catalog::Host& host) {
  const v1::Device* device = name.empty() ? catalog::DefaultDevice(host) : catalog::FindDevice(host, name);
  if (device != nullptr) return device;
  return absl::FailedPreconditionError(
      name.empty() ? "this host has no device"
                   : absl::StrCat("device_id is ", Quoted(name), ", which this host does not have"));
}

absl::StatusOr<v1::Trial> TrialOfVariant(const v1::ProfiledCode& code, const catalog::TuningKey& key,
                                         store::Store& store, const catalog::Host& host) {
  for (const auto& family : host.families.Now()) {
    if (family->name() != code.variant().family()) continue;
    absl::StatusOr<v1::Trial> found =
        store.FindTrial({key.problem_text, catalog::InstanceOf(key.device), code.variant().text(), key.policy,
                         catalog::DependenciesOf(*family, key)});
    if (!absl::IsNotFound(found.status())) return found;
  }
  return absl::NotFoundError(absl::StrCat(code.variant().text(), " has no trial for ", key.problem_text, " on ",
                                          key.device.id(), " as it is today; `attune evaluate ", key.problem_text, " ",
                                          code.variant().text(), "` makes one"));
}

absl::StatusOr<v1::Trial> TrialOfProblem(const v1::ProfiledCode& code, const std::string& device_name,
                                         store::Store& store, const catalog::Host& host) {
  const absl::StatusOr<const v1::Device*> device = Device(device_name, host);
  if (!device.ok()) return device.status();
  const absl::StatusOr<Problem> problem = FromProto(code.problem());
  if (!problem.ok()) return problem.status();
  const auto key = trials::MakeTuningKey(*problem, **device, code.policy(), host);
  if (!key.ok()) return key.status();
  if (!code.variant().text().empty()) return TrialOfVariant(code, *key, store, host);
  const absl::StatusOr<v1::Incumbent> served =
      store.GetIncumbent(key->problem_text, (*device)->fingerprint(), key->policy);
  if (served.ok()) return served->trial();
  if (!absl::IsNotFound(served.status())) return served.status();
  return absl::NotFoundError(absl::StrCat("nobody has tuned ", key->problem_text, " on ", (*device)->id(),
                                          "; tune it, or name a variant that was tried"));
}

absl::StatusOr<v1::Trial> Find(const v1::ProfiledCode& code, const std::string& device,
                               const v1::Submission* submission, store::Store& store, const catalog::Host& host) {
  if (!code.trial().empty()) return store.GetTrial(code.trial());
  if (submission != nullptr) {
    const absl::StatusOr<std::string> name =
        TrialOf(*submission, code.has_problem() ? &code.problem() : nullptr, "code.problem");
    if (!name.ok()) return name.status();
    return store.GetTrial(*name);
  }
  const absl::StatusOr<v1::Trial> found = TrialOfProblem(code, device, store, host);
  if (!found.ok()) return found.status();
  return store.GetTrial(found->name());
}

}  // namespace

absl::StatusOr<std::string> TrialOf(const v1::Submission& submission, const v1::Problem* problem,
                                    absl::string_view field) {
  std::string wanted;
  if (problem != nullptr) {
    const absl::StatusOr<Problem> valid = FromProto(*problem);
    if (!valid.ok()) return valid.status();
    wanted = ToText(*valid);
  }
  const auto& rows = submission.result().rows();
  if (wanted.empty() && rows.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is empty, and ", submission.name(), " is of ", rows.size(), " problems; name one"));
  }
  for (const v1::SubmitResult::Row& row : rows) {
    if (!wanted.empty() && row.problem() != wanted) continue;
    if (!row.trial().name().empty()) return row.trial().name();
    return absl::NotFoundError(
        absl::StrCat(submission.name(), " was not tried for ", row.problem(), ": ", row.reason()));
  }
  return absl::NotFoundError(absl::StrCat(submission.name(), " was not submitted for ", wanted));
}

absl::StatusOr<v1::Trial> FindSubject(const v1::ProfiledCode& code, const std::string& device,
                                      const v1::Submission* submission, store::Store& store,
                                      const catalog::Host& host) {
  absl::StatusOr<v1::Trial> trial = Find(code, device, submission, store, host);
  if (!trial.ok()) return trial.status();
  if (!trial->artifact_sha256().empty() && trial->recipe().launches_size() > 0) return trial;
  return absl::NotFoundError(
      absl::StrCat(trial->name(), " has no code to run: its verdict is ", attune::Word(trial->verdict())));
}

absl::StatusOr<std::string> DeviceFor(const v1::Trial& trial, const std::string& wanted, const catalog::Host& host) {
  const std::string& device_class = trial.dependencies().device_fingerprint();
  const v1::Device* device = nullptr;
  if (wanted.empty()) {
    device = catalog::FindCard(host, catalog::InstanceOf(trial));
    if (device == nullptr || device->fingerprint() != device_class) device = catalog::DeviceOfClass(host, device_class);
    if (device == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat(trial.name(), " ran on ", trial.device_id(), ", and no device of its class is here"));
    }
  } else {
    device = catalog::FindDevice(host, wanted);
    if (device == nullptr || device->fingerprint() != device_class) {
      return absl::FailedPreconditionError(absl::StrCat("device_id is ", Quoted(wanted), ", and the code of ",
                                                        trial.name(), " is of another class of device"));
    }
  }
  if (device->backend() == v1::BACKEND_CUDA) return wanted.empty() ? device->id() : wanted;
  return absl::FailedPreconditionError(
      absl::StrCat(device->id(), " (", device->model(),
                   ") is a device of OpenCL: Nsight Compute and compute-sanitizer know "
                   "CUDA devices alone"));
}

}  // namespace attune::profile
