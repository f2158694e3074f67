// attune devices: where kernels run, and which backends are missing and why.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/fleet_cards.h"
#include "client/cli/json.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

// Classes of cards that other hosts have.
Table ClassesOf(const std::vector<FleetCard>& cards) {
  std::map<std::string, std::vector<FleetCard>> classes;  // by alias
  for (const FleetCard& card : cards) {
    if (card.live) classes[card.device.class_alias()].push_back(card);
  }
  Table table({{"class"}, {"model", kFlexible}, {"target", kText, 1}, {"memory", kNumber}, {"cards", kWrapped}});
  for (const auto& [alias, its] : classes) {
    const v1::Device& one = its.front().device;
    const std::string names =
        absl::StrJoin(its, ", ", [](std::string* out, const FleetCard& card) { absl::StrAppend(out, card.name); });
    table.Row({alias, one.model(), one.target(), Bytes(one.memory_bytes()), names});
  }
  return table;
}

void Print(Session& session, const v1::ListDevicesResponse& response, const std::vector<FleetCard>& fleet) {
  Table devices({{"device"},
                 {"class"},
                 {"model", kFlexible},
                 {"target", kText, 1},
                 {"driver", kFlexible},
                 {"units", kNumber},      // SMs, or OpenCL's compute units
                 {"shared", kNumber, 2},  // of a CTA or work-group
                 {"L2", kNumber, 4},
                 {"memory", kNumber},
                 {"GB/s", kNumber, 3}});
  for (const v1::Device& device : response.devices()) {
    devices.Row({device.id(), device.class_alias(), device.model(), device.target(), device.driver(),
                 absl::StrCat(device.compute_units()), Bytes(device.shared_bytes_per_block()), Bytes(device.l2_bytes()),
                 Bytes(device.memory_bytes()),
                 device.memory_bandwidth_gbs() > 0 ? absl::StrCat(device.memory_bandwidth_gbs()) : "-"});
  }
  if (devices.empty()) {
    session.Print("No device here. The server answers queries; hosts that share its store tune (attune hosts).");
    if (const Table classes = ClassesOf(fleet); !classes.empty()) {
      session.Print("");
      session.Print(classes);
    }
  } else {
    session.Print(devices);
  }
  session.Print("");
  Table backends({{"backend"}, {"state"}, {"compiler or what is missing", kWrapped}});
  for (const v1::BackendStatus& status : response.backends()) {
    backends.Row({Word(status.backend()),
                  status.available() ? Cell("in use", Color::kGreen) : Cell("missing", Color::kYellow),
                  status.available() ? status.compiler() : status.reason()});
  }
  session.Print(backends);
  session.Print(absl::StrCat("attuned ", response.server_version(), " at ", session.server()));
}

absl::StatusOr<ExitCode> RunDevices(Session& session) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto response = (*client)->ListDevices();
  if (!response.ok()) return response.status();
  if (session.json()) {
    for (const v1::Device& device : response->devices()) session.Emit(DeviceJson(device));
    for (const v1::BackendStatus& status : response->backends()) session.Emit(BackendJson(status));
  } else {
    Print(session, *response, response->devices().empty() ? FleetCards(**client) : std::vector<FleetCard>());
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddDevices(CLI::App&) { return RunDevices; }

}  // namespace attune::cli
