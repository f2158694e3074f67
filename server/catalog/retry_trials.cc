#include "server/catalog/retry_trials.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/attune/problem.h"
#include "server/space/space.h"

namespace attune::catalog {
namespace {

constexpr int kPageSize = 1000;

// The compile key of a trial that has no code; nullopt when it has, or its variant or device is no longer here.
std::optional<std::string> FailedCompile(const v1::Trial& trial, const Host& host) {
  if (!trial.artifact_sha256().empty()) return std::nullopt;
  const v1::Device* device = DeviceFor(trial, host);
  if (device == nullptr) return std::nullopt;
  const absl::StatusOr<Problem> problem = FromProto(trial.problem());
  const absl::StatusOr<space::Variant> variant = space::ParseVariant(trial.variant().text(), host.families);
  if (!problem.ok() || !variant.ok()) return std::nullopt;
  absl::StatusOr<space::CompileSpec> spec = space::SpecFor(*variant, *problem, *device);
  if (!spec.ok()) return std::nullopt;
  return std::move(spec->key);
}

}  // namespace

absl::StatusOr<v1::RetryTrialsResponse> RetryTrials(const v1::TrialFilter& filter, store::Store& store,
                                                    const Host& host) {
  std::map<std::string, std::set<std::string>> failed;  // toolchain to compile keys
  std::string token;
  do {
    absl::StatusOr<store::Page<v1::Trial>> page =
        store.ListTrials(filter, v1::ListTrialsRequest::ORDER_NEWEST, kPageSize, token);
    if (!page.ok()) return page.status();
    for (const v1::Trial& trial : page->items) {
      std::optional<std::string> key = FailedCompile(trial, host);
      if (key.has_value()) failed[trial.dependencies().toolchain()].insert(*std::move(key));
    }
    token = page->next_page_token;
  } while (!token.empty());

  v1::RetryTrialsResponse response;
  // Codes first: a trial that is tried again must not meet its old verdict.
  for (const auto& [toolchain, keys] : failed) {
    const absl::StatusOr<int64_t> forgotten = store.ForgetFailedCompiles({keys.begin(), keys.end()}, toolchain);
    if (!forgotten.ok()) return forgotten.status();
    response.set_codes(response.codes() + *forgotten);
  }
  absl::StatusOr<store::Retried> retried = store.RetryTrials(filter);
  if (!retried.ok()) return retried.status();
  response.set_trials(retried->trials);
  for (std::string& problem : retried->problems) response.add_problems(std::move(problem));
  return response;
}

}  // namespace attune::catalog
