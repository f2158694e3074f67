#include "server/trials/reference.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/seed.h"
#include "server/trials/code.h"

namespace attune::trials {
namespace {

absl::StatusOr<CodePtr> CodeOf(const jobs::JobContext& context, const search::Subject& subject,
                               const space::Variant& variant) {
  absl::StatusOr<space::CompileSpec> spec = space::SpecFor(variant, subject.problem, subject.device);
  if (!spec.ok()) return spec.status();
  return GetGoodCode(*context.shop.store, *context.shop.compiler, *variant.family, *spec, subject.device,
                     subject.toolchain, jobs::CompilePriority(context.priority, true), context.operation.stop_token());
}

absl::StatusOr<worker::v1::ReferenceKernel> ReferenceFor(const jobs::JobContext& context,
                                                         const search::Subject& subject,
                                                         std::shared_ptr<const space::Family> family, int64_t plain) {
  const space::Variant variant{std::move(family), {plain}};
  absl::StatusOr<CodePtr> code = CodeOf(context, subject, variant);
  if (!code.ok()) return code.status();
  absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(variant, subject.problem, subject.device);
  if (!recipe.ok()) return recipe.status();
  worker::v1::ReferenceKernel kernel;
  kernel.set_artifact((*code)->artifact);
  *kernel.mutable_recipe() = *std::move(recipe);
  return kernel;
}

}  // namespace

absl::StatusOr<worker::v1::PrepareRequest> MakePrepareRequest(const jobs::JobContext& context,
                                                              const search::Subject& subject) {
  absl::Status applies = absl::NotFoundError("there is none");
  for (const std::shared_ptr<const space::Family>& family :
       search::FamiliesFor(context.shop.families, subject.device.backend(), family::v1::ROLE_REFERENCE)) {
    applies = space::Applies(*family, subject.problem, subject.device);
    if (!applies.ok()) continue;
    if (family->manifest.parameters_size() != 1 || family->manifest.parameters(0).name() != "PLAIN") {
      return absl::FailedPreconditionError(absl::StrCat("kernel family ", family->name(),
                                                        ": a reference family has one parameter, PLAIN; this has ",
                                                        family->manifest.parameters_size()));
    }
    absl::StatusOr<worker::v1::ReferenceKernel> exact = ReferenceFor(context, subject, family, 0);
    if (!exact.ok()) return exact.status();
    absl::StatusOr<worker::v1::ReferenceKernel> plain = ReferenceFor(context, subject, family, 1);
    if (!plain.ok()) return plain.status();
    worker::v1::PrepareRequest request;
    *request.mutable_problem() = ToProto(subject.problem);
    *request.mutable_exact() = *std::move(exact);
    *request.mutable_plain() = *std::move(plain);
    request.set_seed(SeedFrom(subject.problem_text));
    return request;
  }
  return absl::FailedPreconditionError(absl::StrCat("no reference kernel family for ", subject.problem_text, " on ",
                                                    subject.device.id(), ": ", applies.message()));
}

absl::StatusOr<double> MeasureFloor(const jobs::JobContext& context, const search::Subject& subject,
                                    DeviceSession& session) {
  for (const std::shared_ptr<const space::Family>& family :
       search::FamiliesFor(context.shop.families, subject.device.backend(), family::v1::ROLE_FLOOR)) {
    const space::Variant variant{family, {}};
    absl::StatusOr<CodePtr> code = CodeOf(context, subject, variant);
    if (!code.ok()) return code.status();
    worker::v1::FloorRequest request;
    request.set_artifact((*code)->artifact);
    request.set_entry(family->manifest.launches(0).entry());
    absl::StatusOr<worker::v1::FloorResponse> floor = session.Floor(request);
    if (!floor.ok()) return floor.status();
    return floor->timing().median_us();
  }
  return 0.0;
}

}  // namespace attune::trials
