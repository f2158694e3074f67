#include "server/store/checks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/problem.h"
#include "proto/attune/quote.h"
#include "server/base/sha256.h"

namespace attune::store {

absl::Status CheckTrial(const v1::Trial& trial) {
  const std::pair<absl::string_view, bool> missing[] = {
      {"problem_text", trial.problem_text().empty()},       {"device_id", trial.device_id().empty()},
      {"variant.family", trial.variant().family().empty()}, {"variant.text", trial.variant().text().empty()},
      {"policy", trial.policy() == v1::POLICY_UNSPECIFIED}, {"verdict", trial.verdict() == v1::VERDICT_UNSPECIFIED}};
  for (const auto& [field, is_missing] : missing) {
    if (is_missing) return absl::InvalidArgumentError(absl::StrCat("trial: ", field, " is not set; it must be"));
  }
  return absl::OkStatus();
}

absl::Status CheckArtifact(const CompiledArtifact& artifact, absl::string_view bytes) {
  const bool ok = artifact.verdict == v1::VERDICT_OK;
  if (artifact.compile_key.empty()) return absl::InvalidArgumentError("artifact: compile_key is empty; it must not be");
  if (ok != !bytes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("artifact: ", bytes.size(), " bytes with the verdict ",
                                                   v1::Verdict_Name(artifact.verdict),
                                                   "; there must be some with OK and none otherwise"));
  }
  if (ok && artifact.sha256 != Sha256(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("artifact: sha256 is '", artifact.sha256, "'; the bytes' own is ", Sha256(bytes)));
  }
  return absl::OkStatus();
}

absl::Status NoWayBack(absl::string_view to, absl::string_view served, const std::vector<std::string>& before,
                       const std::optional<v1::Incumbent>& named, absl::string_view whose) {
  const std::string allowed =
      before.empty() ? "there is none before it" : absl::StrCat("allowed: ", absl::StrJoin(before, ", "));
  if (to == served) {
    return absl::FailedPreconditionError(absl::StrCat("to is ", Quoted(to), ", which is served already; ", allowed));
  }
  if (!named.has_value() || WordsOf(named->problem_text(), named->device_class(), named->policy()) != whose) {
    return absl::NotFoundError(absl::StrCat("to is ", Quoted(to), ", which is no incumbent of ", whose, "; ", served,
                                            " is served, ", allowed));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("to is ", Quoted(to), ", which was rolled back and is not served again (", allowed,
                   "); `attune serve` pins its variant, ", named->trial().variant().text()));
}

absl::Status NoOtherBefore(absl::string_view served, const std::vector<std::string>& before, absl::string_view whose) {
  return absl::FailedPreconditionError(
      absl::StrCat(served, " of ", whose,
                   ": all before it serve the same variant, so that a rollback would change nothing; to goes ",
                   "back to an earlier timing of it, allowed: ", absl::StrJoin(before, ", ")));
}

// Of a class there is a fingerprint alone here, of which the beginning is enough to tell it from others.
std::string WordsOf(absl::string_view problem_text, absl::string_view device_class, v1::Policy policy) {
  return absl::StrCat(problem_text, " on device class ", device_class.substr(0, 8), " (", Word(policy), ")");
}

const std::string& ClassOf(const v1::Trial& trial) { return trial.dependencies().device_fingerprint(); }

absl::Status CheckIncumbent(const v1::Incumbent& incumbent, const v1::Trial& trial) {
  if (trial.verdict() != v1::VERDICT_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat("incumbent: ", trial.name(), " has the verdict ", Word(trial.verdict()), "; allowed is OK"));
  }
  const bool agrees = (incumbent.problem_text().empty() || incumbent.problem_text() == trial.problem_text()) &&
                      (incumbent.device_id().empty() || incumbent.device_id() == trial.device_id()) &&
                      (incumbent.device_class().empty() || incumbent.device_class() == ClassOf(trial)) &&
                      (incumbent.policy() == v1::POLICY_UNSPECIFIED || incumbent.policy() == trial.policy());
  if (agrees) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "incumbent: ", trial.name(), " is of ", WordsOf(trial.problem_text(), ClassOf(trial), trial.policy()), ", by ",
      trial.device_id(), ", not of ", WordsOf(incumbent.problem_text(), incumbent.device_class(), incumbent.policy()),
      ", by ", incumbent.device_id()));
}

absl::Status CheckBaseline(const v1::Baseline& baseline) {
  absl::string_view missing;
  if (baseline.problem_text().empty()) missing = "problem_text";
  if (baseline.device_id().empty()) missing = "device_id";
  if (baseline.contender().empty()) missing = "contender";
  if (baseline.policy() == v1::POLICY_UNSPECIFIED) missing = "policy";
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("baseline: ", missing, " is not set; it must be"));
}

absl::Status CheckRetiming(const v1::Retiming& retiming) {
  absl::string_view missing;
  if (retiming.problem_text().empty()) missing = "problem_text";
  if (retiming.device_id().empty()) missing = "device_id";
  if (retiming.variant().empty()) missing = "variant";
  if (retiming.policy() == v1::POLICY_UNSPECIFIED) missing = "policy";
  if (!missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("retiming: ", missing, " is not set; it must be"));
  }
  if (retiming.timing().median_us() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("retiming: timing.median_us is ", retiming.timing().median_us(), "; it must be above 0"));
}

}  // namespace attune::store
