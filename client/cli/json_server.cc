// JSON of what the server has: devices, backends, families, spaces, backups.
#include "client/cli/json.h"
#include "client/cli/preflight_text.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

Json ConstraintJson(const v1::KernelFamily::Constraint& constraint) {
  return {{"expression", constraint.expression()}, {"reason", constraint.reason()}, {"advice", constraint.advice()}};
}

}  // namespace

Json DeviceJson(const v1::Device& device) {
  return {{"type", "device"},
          {"device", device.id()},
          {"class", device.class_alias()},
          {"backend", Word(device.backend())},
          {"model", TextOrNull(device.model())},
          {"uuid", TextOrNull(device.uuid())},
          {"driver", TextOrNull(device.driver())},
          {"target", TextOrNull(device.target())},
          {"fingerprint", TextOrNull(device.fingerprint())},
          {"sm_count", PositiveOrNull(device.compute_units())},
          {"warp_size", PositiveOrNull(device.warp_size())},
          {"max_threads_per_block", PositiveOrNull(device.max_threads_per_block())},
          {"max_warps_per_sm", PositiveOrNull(device.max_warps_per_sm())},
          {"max_blocks_per_sm", PositiveOrNull(device.max_blocks_per_sm())},
          {"registers_per_sm", PositiveOrNull(device.registers_per_sm())},
          {"max_registers_per_thread", PositiveOrNull(device.max_registers_per_thread())},
          {"shared_bytes_per_block", PositiveOrNull(device.shared_bytes_per_block())},
          {"shared_bytes_per_sm", PositiveOrNull(device.shared_bytes_per_sm())},
          {"l2_bytes", PositiveOrNull(device.l2_bytes())},
          {"memory_bytes", PositiveOrNull(device.memory_bytes())},
          {"compute_capability", PositiveOrNull(device.compute_capability())},
          {"sm_clock_mhz", PositiveOrNull(device.sm_clock_mhz())},
          {"memory_bandwidth_gbs", PositiveOrNull(device.memory_bandwidth_gbs())},
          {"counts_energy", device.counts_energy()}};
}

Json HostJson(const v1::Host& host) {
  Json json = {{"type", "host"},
               {"host", host.name()},
               {"state", Word(host.state())},
               {"draining", host.draining()},
               {"version", TextOrNull(host.version())},
               {"start_time", Iso(host.start_time())},
               {"heartbeat_time", Iso(host.heartbeat_time())},
               {"heartbeat_age_s", absl::ToDoubleSeconds(FromProto(host.heartbeat_age()))},
               {"devices", Json::array()},
               {"operations", Json::array()}};
  for (const v1::Device& device : host.devices()) {
    json["devices"].push_back({{"device", device.id()},
                               {"class", device.class_alias()},
                               {"model", TextOrNull(device.model())},
                               {"uuid", TextOrNull(device.uuid())},
                               {"driver", TextOrNull(device.driver())},
                               {"fingerprint", TextOrNull(device.fingerprint())}});
  }
  for (const v1::HostOperation& operation : host.operations()) {
    json["operations"].push_back({{"operation", operation.name()}, {"title", TextOrNull(operation.title())}});
  }
  return json;
}

Json BackendJson(const v1::BackendStatus& status) {
  return {{"type", "backend"},
          {"backend", Word(status.backend())},
          {"available", status.available()},
          {"compiler", TextOrNull(status.compiler())},
          {"reason", TextOrNull(status.reason())}};
}

Json FamilyJson(const v1::KernelFamily& family) {
  Json json = {{"type", "family"},
               {"family", family.name()},
               {"backend", Word(family.backend())},
               {"description", family.description()},
               {"source_hash", family.source_hash()},
               {"parameters", Json::array()},
               {"constraints", Json::array()},
               {"problem_limits", Json::array()}};
  for (const auto& parameter : family.parameters()) {
    json["parameters"].push_back({{"name", parameter.name()},
                                  {"values", parameter.values()},
                                  {"launch_time", parameter.launch_time()},
                                  {"description", parameter.description()}});
  }
  for (const auto& constraint : family.constraints()) json["constraints"].push_back(ConstraintJson(constraint));
  for (const auto& limit : family.problem_limits()) json["problem_limits"].push_back(ConstraintJson(limit));
  return json;
}

Json BackupJson(const v1::Backup& backup) {
  return {{"type", "backup"},
          {"backup", backup.name()},
          {"path", backup.path()},
          {"create_time", Iso(backup.create_time())},
          {"bytes", backup.bytes()},
          {"trials", backup.trials()},
          {"incumbents", backup.incumbents()},
          {"operations", backup.jobs()},
          {"artifacts", backup.artifacts()},
          {"missing_artifacts", backup.missing_artifacts()},
          {"elapsed_s", absl::ToDoubleSeconds(FromProto(backup.elapsed()))}};
}

Json CallerJson(const v1::Caller& caller) {
  Json quotas = Json::object();
  for (const v1::Caller::Quota& quota : caller.quotas()) quotas[quota.name()] = quota.limit();
  return {{"type", "caller"}, {"principal", caller.principal()}, {"role", caller.role()}, {"quotas", quotas}};
}

Json TokenJson(const v1::Token& token, const std::string& secret) {
  return {{"type", "token"},
          {"token", token.name()},
          {"role", token.role()},
          {"create_time", Iso(token.create_time())},
          {"expire_time", Iso(token.expire_time())},
          {"created_by", token.created_by()},
          {"secret", TextOrNull(secret)}};
}

Json PreflightJson(const v1::PreflightResponse& preflight) {
  Json json = {{"type", "preflight"},
               {"problem", ProblemText(preflight.problem())},
               {"device", preflight.device().id()},
               {"estimate_s", SecondsOrNull(preflight.has_estimate(), preflight.estimate())},
               {"warnings", preflight.warnings()},
               {"families", Json::array()}};
  for (const auto& family : preflight.families()) {
    Json removed = Json::array();
    for (const auto& constraint : family.removed()) {
      removed.push_back({{"constraint", constraint.constraint()},
                         {"reason", constraint.reason()},
                         {"removed", constraint.removed()},
                         {"advice", constraint.advice()}});
    }
    json["families"].push_back({{"family", family.name()},
                                {"feasible", family.feasible()},
                                {"reason", TextOrNull(family.reason())},
                                {"product", family.product()},
                                {"variants", family.variants()},
                                {"lower_bound", family.lower_bound()},
                                {"compiles", CompilesKnown(family) ? Json(family.compiles()) : Json()},
                                {"known", family.known()},
                                {"removed", std::move(removed)}});
  }
  return json;
}

}  // namespace attune::cli
