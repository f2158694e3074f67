#include "server/trials/reference.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/seed.h"
#include "server/catalog/families.h"

namespace attune::trials {
namespace {

absl::StatusOr<CodePtr> CodeOf(const space::Variant& variant, const catalog::TuningKey& tuning_key,
                               const CodeSource& code, const Job& job) {
  absl::StatusOr<space::CompileSpec> spec = space::SpecFor(variant, tuning_key.problem, tuning_key.device);
  if (!spec.ok()) return spec.status();
  return code.Get(*variant.family, *spec, tuning_key, job);
}

absl::StatusOr<worker::v1::ReferenceKernel> ReferenceFor(std::shared_ptr<const space::Family> family, int64_t plain,
                                                         const catalog::TuningKey& tuning_key, const CodeSource& source,
                                                         const Job& job) {
  const space::Variant variant{std::move(family), {plain}};
  absl::StatusOr<CodePtr> code = CodeOf(variant, tuning_key, source, job);
  if (!code.ok()) return code.status();
  absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(variant, tuning_key.problem, tuning_key.device);
  if (!recipe.ok()) return recipe.status();
  worker::v1::ReferenceKernel kernel;
  kernel.set_artifact((*code)->artifact);
  *kernel.mutable_recipe() = *std::move(recipe);
  return kernel;
}

absl::StatusOr<worker::v1::PrepareRequest> MakePrepareRequest(const catalog::TuningKey& tuning_key,
                                                              const Families& families, const CodeSource& code,
                                                              const Job& job, uint64_t seed) {
  absl::Status applies = absl::NotFoundError("there is none");
  for (const std::shared_ptr<const space::Family>& family :
       catalog::FamiliesFor(families, tuning_key.device.backend(), family::v1::ROLE_REFERENCE)) {
    applies = space::Applies(*family, tuning_key.problem, tuning_key.device);
    if (!applies.ok()) continue;
    if (family->manifest.parameters_size() != 1 || family->manifest.parameters(0).name() != "PLAIN") {
      return absl::FailedPreconditionError(absl::StrCat("kernel family ", family->name(),
                                                        ": a reference family has one parameter, PLAIN; this has ",
                                                        family->manifest.parameters_size()));
    }
    absl::StatusOr<worker::v1::ReferenceKernel> exact = ReferenceFor(family, 0, tuning_key, code, job);
    if (!exact.ok()) return exact.status();
    absl::StatusOr<worker::v1::ReferenceKernel> plain = ReferenceFor(family, 1, tuning_key, code, job);
    if (!plain.ok()) return plain.status();
    worker::v1::PrepareRequest request;
    *request.mutable_problem() = ToProto(tuning_key.problem);
    *request.mutable_exact() = *std::move(exact);
    *request.mutable_plain() = *std::move(plain);
    request.set_seed(seed);
    return request;
  }
  return absl::FailedPreconditionError(absl::StrCat("no reference kernel family for ", tuning_key.problem_text, " on ",
                                                    tuning_key.device.id(), ": ", applies.message()));
}

}  // namespace

absl::Status OpenDevice(DeviceSlot& slot, const Job& job) {
  return DeviceUse(slot, job.priority, job.stop, {}, job.abort).OpenIfFree();
}

absl::StatusOr<std::unique_ptr<DeviceUse>> TakeDevice(
    DeviceSlot& slot, const catalog::TuningKey& tuning_key, const Families& families, const CodeSource& code,
    const Job& job, uint64_t seed, const std::function<void(const worker::v1::PrepareRequest&)>& at_turn) {
  job.progress.SetPhase(v1::OperationProgress::PHASE_REFERENCE, "compiling the reference kernel");
  absl::StatusOr<worker::v1::PrepareRequest> prepare = MakePrepareRequest(tuning_key, families, code, job, seed);
  if (!prepare.ok()) return prepare.status();
  // Its place in the queue begins here: nobody waits for the device while a kernel is compiled.
  auto device = std::make_unique<DeviceUse>(slot, job.priority, job.stop, job.waiter, job.abort);
  device->Use(*prepare);
  job.progress.SetPhase(v1::OperationProgress::PHASE_REFERENCE, "inputs and reference results");
  if (at_turn) {
    if (absl::Status status = device->Await(); !status.ok()) return status;
    at_turn(*prepare);
  }
  if (absl::Status status = device->Prepare(); !status.ok()) return status;
  return device;
}

uint64_t InputSeed(const catalog::TuningKey& tuning_key) { return SeedFrom(tuning_key.problem_text); }

absl::StatusOr<double> MeasureFloor(const catalog::TuningKey& tuning_key, const Families& families,
                                    const CodeSource& code, const Job& job, DeviceUse& device) {
  for (const std::shared_ptr<const space::Family>& family :
       catalog::FamiliesFor(families, tuning_key.device.backend(), family::v1::ROLE_FLOOR)) {
    absl::StatusOr<CodePtr> empty = CodeOf(space::Variant{family, {}}, tuning_key, code, job);
    if (!empty.ok()) return empty.status();
    worker::v1::FloorRequest request;
    request.set_artifact((*empty)->artifact);
    request.set_entry(family->manifest.launches(0).entry());
    absl::StatusOr<worker::v1::FloorResponse> floor = device.Floor(request);
    if (!floor.ok()) return floor.status();
    return floor->timing().median_us();
  }
  return 0.0;
}

}  // namespace attune::trials
