// attune hosts: the daemons that share the server's store; who drains and who is forgotten.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct HostsArguments {
  std::string action = "list";
  std::string name;
};

// "cuda:0, cuda:1 (h200); opencl:0 (pthread)"
std::string DevicesText(const v1::Host& host) {
  std::vector<std::pair<std::string, std::vector<std::string>>> classes;
  for (const v1::Device& device : host.devices()) {
    auto it = std::find_if(classes.begin(), classes.end(),
                           [&](const auto& one) { return one.first == device.class_alias(); });
    if (it == classes.end()) it = classes.insert(classes.end(), {device.class_alias(), {}});
    it->second.push_back(device.id());
  }
  if (classes.empty()) return "none: a gateway";
  return absl::StrJoin(classes, "; ", [](std::string* out, const auto& one) {
    absl::StrAppend(out, absl::StrJoin(one.second, ", "), " (", one.first, ")");
  });
}

Cell StateCell(const v1::Host& host) {
  const std::string state = Word(host.state());
  const std::string text = host.draining() ? absl::StrCat(state, ", draining") : state;
  if (host.state() != v1::Host::STATE_LIVE) return {text, Color::kRed};
  return {text, host.draining() ? Color::kYellow : Color::kGreen};
}

absl::StatusOr<ExitCode> List(Session& session, Client& client) {
  const auto hosts = client.ListHosts();
  if (!hosts.ok()) return hosts.status();
  Table table({{"host", kName},
               {"state"},
               {"heard", kNumber},
               {"version", kText, 1},
               {"devices", kFlexible},
               {"works on", kWrapped}});
  for (const v1::Host& host : hosts->hosts()) {
    if (session.json()) {
      session.Emit(HostJson(host));
      continue;
    }
    const std::string work =
        absl::StrJoin(host.operations(), "; ", [](std::string* out, const v1::HostOperation& operation) {
          absl::StrAppend(out, operation.title().empty() ? operation.name() : operation.title());
        });
    table.Row({host.name(), StateCell(host), absl::StrCat(DurationText(FromProto(host.heartbeat_age())), " ago"),
               host.version(), DevicesText(host), work});
  }
  if (!session.json()) session.Print(table);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Change(Session& session, Client& client, const HostsArguments& arguments) {
  const std::string name = ResourceName("hosts", arguments.name);
  absl::StatusOr<v1::Host> host = arguments.action == "drain"     ? client.DrainHost(name)
                                  : arguments.action == "undrain" ? client.UndrainHost(name)
                                                                  : client.ForgetHost(name);
  if (!host.ok()) return host.status();
  if (session.json()) {
    session.Emit(HostJson(*host));
  } else if (arguments.action == "drain") {
    session.Print(absl::StrCat(host->name(), " takes no more work from the queue, and ends what it has begun"));
  } else if (arguments.action == "undrain") {
    session.Print(absl::StrCat(host->name(), " takes work from the queue again"));
  } else {
    session.Print(absl::StrCat("forgotten: ", host->name()));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunHosts(Session& session, const HostsArguments& arguments) {
  if ((arguments.action == "list") != arguments.name.empty()) {
    return absl::InvalidArgumentError("give list, drain HOST, undrain HOST or forget HOST (see attune hosts --help)");
  }
  const auto client = session.client();
  if (!client.ok()) return client.status();
  return arguments.action == "list" ? List(session, **client) : Change(session, **client, arguments);
}

}  // namespace

Action AddHosts(CLI::App& app) {
  auto arguments = std::make_shared<HostsArguments>();
  app.add_option("action", arguments->action, "What to do; default list")
      ->check(OneOf({"list", "drain", "undrain", "forget"}));
  app.add_option("name", arguments->name, "Of the host to drain, undrain or forget");
  return [arguments](Session& session) { return RunHosts(session, *arguments); };
}

}  // namespace attune::cli
