#include "server/tuning/preflight.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/util/time_util.h"
#include "proto/attune/problem.h"
#include "server/base/device_profile.h"
#include "server/space/space.h"

namespace attune::tuning {
namespace {

constexpr char kProfilePrefix[] = "profile:";
constexpr char kProfileWithoutDevice[] = "l4";

absl::StatusOr<v1::Device> FindDevice(absl::string_view id, const World& world) {
  if (id.empty()) return world.devices.empty() ? DeviceProfile(kProfileWithoutDevice) : world.devices.front();
  if (absl::StartsWith(id, kProfilePrefix)) return DeviceProfile(absl::StripPrefix(id, kProfilePrefix));
  for (const v1::Device& device : world.devices) {
    if (device.id() == id) return device;
  }
  return absl::NotFoundError(absl::StrCat("device_id is '", id, "', which is not on this host; profile:<name> stands ",
                                          "for one that is not here"));
}

bool Wanted(const space::Family& family, const v1::PreflightRequest& request, const v1::Device& device) {
  if (family.manifest.role() > family::v1::ROLE_SEARCH || family.manifest.backend() != device.backend()) return false;
  return request.families().empty() ||
         std::find(request.families().begin(), request.families().end(), family.name()) != request.families().end();
}

// Counts one family's space, and remembers the largest grid seen in it.
absl::StatusOr<v1::PreflightResponse::Family> Count(std::shared_ptr<const space::Family> family,
                                                    const v1::PreflightRequest& request, const Problem& problem,
                                                    const v1::Device& device, const std::set<std::string>& known,
                                                    v1::PreflightResponse* response, int64_t* largest_grid) {
  v1::PreflightResponse::Family out;
  out.set_name(family->name());
  if (absl::Status applies = space::Applies(*family, problem, device); !applies.ok()) {
    out.set_reason(std::string(applies.message()));
    return out;
  }
  absl::StatusOr<space::Enumeration> enumeration = space::Enumerate(family, problem, device);
  if (!enumeration.ok()) return enumeration.status();
  std::set<std::string> keys;
  for (const space::Variant& variant : enumeration->variants) {
    const absl::StatusOr<space::CompileSpec> spec = space::SpecFor(variant, problem, device);
    if (!spec.ok()) return spec.status();
    keys.insert(spec->key);
    const absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(variant, problem, device);
    if (!recipe.ok()) return recipe.status();
    *largest_grid = std::max(*largest_grid, space::GeometryOf(*recipe, v1::Resources(), device).ctas());
    if (known.count(absl::StrCat(family->source_hash, " ", variant.ToText())) > 0) out.set_known(out.known() + 1);
    if (request.list_variants()) *response->add_variants() = variant.ToProto();
  }
  out.set_feasible(!enumeration->variants.empty());
  if (!out.feasible()) out.set_reason("no variant satisfies every constraint");
  out.set_variants(static_cast<int64_t>(enumeration->variants.size()));
  out.set_product(enumeration->product);
  out.set_compiles(static_cast<int64_t>(keys.size()));
  for (const space::Removed& removed : enumeration->removed) {
    v1::RemovedByConstraint& to = *out.add_removed();
    to.set_family(family->name());
    to.set_constraint(removed.constraint);
    to.set_reason(removed.reason);
    to.set_removed(removed.count);
  }
  return out;
}

// Trials under today's toolchain and driver as "<source hash> <variant>". The time they took together is returned.
std::set<std::string> KnownVariants(const Problem& problem, const v1::Device& device, const World& world,
                                    store::Store* store) {
  std::set<std::string> known;
  const auto toolchain = world.toolchains.find(device.backend());
  if (toolchain == world.toolchains.end()) return known;
  v1::Dependencies today;
  today.set_toolchain(toolchain->second);
  today.set_driver(device.driver());
  today.set_device_fingerprint(device.fingerprint());
  const auto trials = store->KnownTrials(ToText(problem), device.id(), v1::POLICY_HOT, today);
  if (!trials.ok()) return known;
  for (const v1::Trial& trial : *trials) {
    known.insert(absl::StrCat(trial.dependencies().source_hash(), " ", trial.variant().text()));
  }
  return known;
}

// What a trial took on this device lately, end to end, from the times the last ones ended at; zero when unknown.
absl::Duration RecentTrialTime(const v1::Device& device, store::Store* store) {
  v1::TrialFilter filter;
  filter.set_device_id(device.id());
  const auto page = store->ListTrials(filter, v1::ListTrialsRequest::ORDER_NEWEST, 100, "");
  if (!page.ok() || page->items.size() < 2) return absl::ZeroDuration();
  const std::string& job = page->items.front().job();
  auto same_job = [&job](const v1::Trial& trial) { return trial.job() == job; };
  const auto end = std::find_if_not(page->items.begin(), page->items.end(), same_job);
  const auto count = end - page->items.begin();
  if (count < 2) return absl::ZeroDuration();
  using google::protobuf::util::TimeUtil;
  const int64_t nanoseconds = TimeUtil::TimestampToNanoseconds(page->items.front().finish_time()) -
                              TimeUtil::TimestampToNanoseconds((end - 1)->finish_time());
  return absl::Nanoseconds(nanoseconds) / (count - 1);
}

}  // namespace

absl::StatusOr<v1::PreflightResponse> Preflight(const v1::PreflightRequest& request, const World& world,
                                                store::Store* store) {
  const absl::StatusOr<Problem> problem = FromProto(request.problem());
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<v1::Device> device = FindDevice(request.device_id(), world);
  if (!device.ok()) return device.status();

  v1::PreflightResponse response;
  *response.mutable_problem() = ToProto(*problem);
  *response.mutable_device() = *device;
  const std::set<std::string> known = KnownVariants(*problem, *device, world, store);
  int64_t largest_grid = 0;
  int64_t left = 0;
  for (const auto& family : world.families) {
    if (!Wanted(*family, request, *device)) continue;
    auto counted = Count(family, request, *problem, *device, known, &response, &largest_grid);
    if (!counted.ok()) return counted.status();
    left += counted->variants() - counted->known();
    *response.add_families() = *std::move(counted);
  }
  if (left > 0) {
    if (const absl::Duration each = RecentTrialTime(*device, store); each > absl::ZeroDuration()) {
      *response.mutable_estimate() =
          google::protobuf::util::TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(each * left));
    }
  }
  if (largest_grid == 0) {
    response.add_warnings("no kernel family has a variant for this problem on this device");
  } else if (largest_grid < device->compute_units()) {
    response.add_warnings(absl::StrCat("the largest grid any variant launches is ", largest_grid, " CTAs for ",
                                       device->compute_units(), " SMs: part of the device stays idle"));
  }
  if (absl::StartsWith(device->id(), kProfilePrefix)) {
    response.add_warnings(absl::StrCat(device->id(), " is a set of limits: variants can be listed, not run"));
  }
  return response;
}

}  // namespace attune::tuning
