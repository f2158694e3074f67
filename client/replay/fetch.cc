#include "client/replay/fetch.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"

namespace attune::replay {
namespace {

constexpr int kPage = 1000;

absl::StatusOr<attune::v1::Device> DeviceOf(Client& client, const std::string& wanted) {
  const absl::StatusOr<attune::v1::ListDevicesResponse> devices = client.ListDevices();
  if (!devices.ok()) return devices.status();
  for (const attune::v1::Device& device : devices->devices()) {
    if (wanted.empty() || device.id() == wanted || (!device.uuid().empty() && device.uuid() == wanted)) return device;
  }
  return absl::NotFoundError(
      absl::StrCat("--device is '", wanted, "'; the server has no such card: attune devices lists its cards"));
}

}  // namespace

absl::StatusOr<StoredTrials> FetchTrials(const std::string& server, const std::string& device,
                                         attune::v1::Policy policy, const Problem& problem) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(server);
  if (!client.ok()) return client.status();
  absl::StatusOr<attune::v1::Device> card = DeviceOf(**client, device);
  if (!card.ok()) return card.status();
  attune::v1::ListTrialsRequest request;
  request.set_page_size(kPage);
  request.mutable_filter()->set_problem(ToText(problem));
  request.mutable_filter()->set_device_id(card->id());
  request.mutable_filter()->set_policy(policy);
  StoredTrials stored{*std::move(card), {}};
  do {
    absl::StatusOr<attune::v1::ListTrialsResponse> page = (*client)->ListTrials(request);
    if (!page.ok()) return page.status();
    for (attune::v1::Trial& trial : *page->mutable_trials()) stored.trials.push_back(std::move(trial));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return stored;
}

}  // namespace attune::replay
