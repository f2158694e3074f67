// Client::ExportSnapshot.
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/client_impl.h"

namespace attune {
namespace {

// The server's devices of the incumbent's class; where it has none, the one that timed it.
std::vector<std::string> ServedOn(const v1::Incumbent& incumbent, const v1::ListDevicesResponse& devices) {
  std::vector<std::string> ids;
  for (const v1::Device& device : devices.devices()) {
    if (!incumbent.device_class().empty() && device.fingerprint() == incumbent.device_class()) {
      ids.push_back(device.id());
    }
  }
  if (ids.empty()) ids.push_back(incumbent.device_id());
  return ids;
}

// What the incumbent is asked for: by the objectives that have an answer of their own, and by time, which is last.
std::vector<v1::Objective> ObjectivesOf(const v1::Incumbent& incumbent) {
  std::vector<v1::Objective> objectives;
  for (const v1::Alternative& one : incumbent.alternatives()) {
    if (one.has_trial()) objectives.push_back(one.objective());
  }
  objectives.push_back(v1::OBJECTIVE_UNSPECIFIED);
  return objectives;
}

}  // namespace

absl::StatusOr<ExportSummary> Client::ExportSnapshot(const std::string& path, bool include_artifacts) {
  absl::StatusOr<v1::ListDevicesResponse> devices = ListDevices();
  if (!devices.ok()) return devices.status();
  std::vector<SnapshotAnswer> answers;
  v1::ListIncumbentsRequest list;
  list.set_page_size(1000);
  do {
    const absl::StatusOr<v1::ListIncumbentsResponse> page = ListIncumbents(list);
    if (!page.ok()) return page.status();
    for (const v1::Incumbent& incumbent : page->incumbents()) {
      for (const std::string& device_id : ServedOn(incumbent, *devices)) {
        for (const v1::Objective objective : ObjectivesOf(incumbent)) {
          SnapshotAnswer entry;
          *entry.request.mutable_problem() = incumbent.problem();
          entry.request.set_device_id(device_id);
          entry.request.set_policy(incumbent.policy());
          entry.request.set_include_artifact(include_artifacts);
          entry.request.set_include_domains(true);
          entry.request.set_objective(objective);
          auto answer = impl_->Call(&Connection::Stub::GetBest, entry.request);
          if (absl::IsNotFound(answer.status())) continue;  // rolled back since the page was made
          if (!answer.ok()) return answer.status();
          if (answer->objective() != objective) continue;  // by time by now
          entry.answer = std::make_shared<const v1::GetBestResponse>(*std::move(answer));
          answers.push_back(std::move(entry));
        }
      }
    }
    list.set_page_token(page->next_page_token());
  } while (!list.page_token().empty());
  ExportSummary summary = {answers.size(), static_cast<size_t>(devices->devices_size())};
  const Snapshot snapshot(impl_->options.clock->Now(), *std::move(devices), std::move(answers));
  if (absl::Status status = snapshot.Write(path); !status.ok()) return status;
  return summary;
}

}  // namespace attune
