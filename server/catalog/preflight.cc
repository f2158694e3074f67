#include "server/catalog/preflight.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/attune/problem.h"
#include "proto/attune/quote.h"
#include "server/base/device_profile.h"
#include "server/base/proto_time.h"
#include "server/catalog/families.h"
#include "server/catalog/trial_time.h"
#include "server/catalog/tuning_key.h"
#include "server/space/space.h"

namespace attune::catalog {
namespace {

constexpr char kProfilePrefix[] = "profile:";
constexpr char kProfileWithoutDevice[] = "l4";

absl::StatusOr<v1::Device> DeviceOf(absl::string_view id, const Host& host) {
  if (id.empty()) return DeviceProfile(kProfileWithoutDevice);
  if (absl::StartsWith(id, kProfilePrefix)) return DeviceProfile(absl::StripPrefix(id, kProfilePrefix));
  if (const v1::Device* device = FindDevice(host, id); device != nullptr) return *device;
  return absl::NotFoundError(absl::StrCat("device_id is ", Quoted(id), ", which is not on this host",
                                          host.devices.empty() ? "" : "; available devices: ", DeviceNames(host),
                                          "; profile:<name> stands for one that is not here"));
}

// Most variants that an answer lists: some 3 MB.
constexpr int kMostListed = 10'000;

// What is asked of a problem on a device, and what has been found out so far.
class Count {
 public:
  Count(const v1::PreflightRequest& request, const Problem& problem, const v1::Device& device,
        const std::set<std::string>& known, const space::Stopped& stopped, v1::PreflightResponse* response)
      : request_(request), problem_(problem), device_(device), known_(known), stopped_(stopped), response_(response) {}

  absl::StatusOr<v1::PreflightResponse::Family> Of(const std::shared_ptr<const space::Family>& family) {
    v1::PreflightResponse::Family out;
    out.set_name(family->name());
    absl::Status applies = space::Applies(*family, problem_, device_);
    if (applies.ok()) applies = space::Understands(*family, {request_.where().begin(), request_.where().end()});
    if (!applies.ok()) {
      out.set_reason(std::string(applies.message()));
      return out;
    }
    absl::StatusOr<space::Enumeration> space =
        space::Enumerate(family, problem_, device_, stopped_, space::SelectionOf(request_));
    if (!space.ok()) return space.status();
    out.set_variants(space->count);
    out.set_product(space->product);
    out.set_lower_bound(!space->counted);
    for (const space::Removed& removed : space->removed) {
      v1::RemovedByConstraint& to = *out.add_removed();
      to.set_family(family->name());
      to.set_constraint(removed.constraint);
      to.set_reason(removed.reason);
      to.set_removed(removed.count);
      to.set_advice(removed.advice);
    }
    if (space->listed) {
      if (absl::Status status = LookAt(space->variants, out); !status.ok()) return status;
    } else {
      response_->add_warnings(absl::StrCat(
          family->name(), " has ", space->counted ? "" : "more than ", space->count, " variants: more than the ",
          space::kMostVariants, " that an exhaustive tuning tries one by one; the other strategies draw from them"));
      // As far as anybody can tell: one variant is enough.
      some_grid_is_unknown_ = some_grid_is_unknown_ || space->count > 0 || !space->counted;
    }
    out.set_feasible(space->count > 0 || !space->counted);
    if (!out.feasible()) out.set_reason("no variant satisfies every constraint");
    return out;
  }

  int64_t largest_grid() const { return largest_grid_; }
  bool every_grid_is_known() const { return !some_grid_is_unknown_; }

 private:
  absl::Status LookAt(const std::vector<space::Variant>& variants, v1::PreflightResponse::Family& out) {
    std::set<std::string> keys;
    for (const space::Variant& variant : variants) {
      if (stopped_ && stopped_()) return absl::CancelledError("stopped");
      const absl::StatusOr<space::CompileSpec> spec = space::SpecFor(variant, problem_, device_);
      if (!spec.ok()) return spec.status();
      keys.insert(spec->key);
      const absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(variant, problem_, device_);
      if (!recipe.ok()) return recipe.status();
      largest_grid_ = std::max(largest_grid_, space::GeometryOf(*recipe, v1::Resources(), device_).ctas());
      if (known_.contains(absl::StrCat(variant.family->source_hash, " ", variant.ToText()))) {
        out.set_known(out.known() + 1);
      }
      if (request_.list_variants()) List(variant);
    }
    out.set_compiles(static_cast<int64_t>(keys.size()));
    return absl::OkStatus();
  }

  void List(const space::Variant& variant) {
    if (response_->variants_size() < kMostListed) {
      *response_->add_variants() = variant.ToProto();
    } else if (!std::exchange(cut_, true)) {
      response_->add_warnings(absl::StrCat("only the first ", kMostListed, " variants are listed"));
    }
  }

  const v1::PreflightRequest& request_;
  const Problem& problem_;
  const v1::Device& device_;
  const std::set<std::string>& known_;
  const space::Stopped& stopped_;
  v1::PreflightResponse* const response_;
  int64_t largest_grid_ = 0;
  bool some_grid_is_unknown_ = false;
  bool cut_ = false;
};

// Trials under today's toolchain and driver as "<source hash> <variant>".
absl::StatusOr<std::set<std::string>> KnownVariants(const Problem& problem, const v1::Device& device, const Host& host,
                                                    store::Store& store) {
  std::set<std::string> known;
  const absl::StatusOr<std::string> toolchain = Toolchain(host, device.backend());
  if (!toolchain.ok()) return known;  // nothing was compiled here
  const TuningKey tuning_key{problem, ToText(problem), device, kDefaultPolicy, *toolchain};
  const absl::StatusOr<std::vector<v1::Trial>> trials = KnownToday(store, tuning_key);
  if (!trials.ok()) return trials.status();
  for (const v1::Trial& trial : *trials) {
    known.insert(absl::StrCat(trial.dependencies().source_hash(), " ", trial.variant().text()));
  }
  return known;
}

// What is said of the grids of all the variants there are.
void WarnOfGrids(const Count& count, const v1::Device& device, v1::PreflightResponse& response) {
  // Whatever the listed families launch, one that is not listed may launch more.
  if (!count.every_grid_is_known()) return;
  if (count.largest_grid() == 0) {
    response.add_warnings("no kernel family has a variant for this problem on this device");
  } else if (count.largest_grid() < device.compute_units()) {
    response.add_warnings(absl::StrCat("the largest grid any variant launches is ", count.largest_grid(), " CTAs for ",
                                       device.compute_units(), " SMs: part of the device stays idle"));
  }
}

}  // namespace

absl::StatusOr<v1::PreflightResponse> Preflight(const v1::PreflightRequest& request, const Host& host,
                                                store::Store& store, const space::Stopped& stopped) {
  const absl::StatusOr<Problem> problem = FromProto(request.problem());
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<v1::Device> device = DeviceOf(request.device_id(), host);
  if (!device.ok()) return device.status();
  v1::PreflightResponse response;
  *response.mutable_problem() = ToProto(*problem);
  *response.mutable_device() = *device;
  const absl::StatusOr<std::set<std::string>> known = KnownVariants(*problem, *device, host, store);
  if (!known.ok()) return known.status();
  Count count(request, *problem, *device, *known, stopped, &response);
  int64_t left = 0;
  const std::vector<std::string> names(request.families().begin(), request.families().end());
  for (const auto& family : FamiliesFor(host.families, device->backend(), family::v1::ROLE_SEARCH, names)) {
    auto counted = count.Of(family);
    if (!counted.ok()) return counted.status();
    if (counted->compiles() > 0) left += counted->variants() - counted->known();
    *response.add_families() = *std::move(counted);
  }
  const absl::StatusOr<absl::Duration> each = RecentTrialTime(*device, store);
  if (!each.ok()) return each.status();
  if (left > 0 && *each > absl::ZeroDuration()) SetDuration(*each * left, response.mutable_estimate());
  WarnOfGrids(count, *device, response);
  if (absl::StartsWith(device->id(), kProfilePrefix)) {
    response.add_warnings(absl::StrCat(device->id(), " is a set of limits: variants can be listed, not run"));
  }
  return response;
}

}  // namespace attune::catalog
