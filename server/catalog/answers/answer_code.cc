#include "server/catalog/answers/answer_code.h"

#include "absl/strings/str_cat.h"
#include "proto/attune/problem.h"
#include "server/catalog/code_rejection.h"
#include "server/space/space.h"

namespace attune::catalog {

std::string WhyUseless(const store::CompiledArtifact& report, const Answer& answer, const Host& host) {
  if (report.verdict != v1::VERDICT_OK) {
    return absl::StrCat("compiling it ended with ", Word(report.verdict), ": ", GistOf(report.log));
  }
  const v1::Device* const device = DeviceOfClass(host, answer.device_class);
  if (device == nullptr) return "";
  const v1::LaunchRecipe& recipe = answer.response.recipe();
  const v1::Resources resources = ResourcesOf(report, recipe);
  return InfeasibleReason(report, resources, space::GeometryOf(recipe, resources, *device), recipe, *device);
}

}  // namespace attune::catalog
