#include "client/cli/preflight_text.h"

#include "absl/strings/str_cat.h"

namespace attune::cli {

v1::PreflightRequest MakePreflightRequest(const Session& session, const Problem& problem,
                                          const std::vector<std::string>& families) {
  v1::PreflightRequest request;
  *request.mutable_problem() = attune::ToProto(problem);
  request.set_device_id(session.options().device);
  for (const std::string& family : families) request.add_families(family);
  return request;
}

std::string VariantCount(const v1::PreflightResponse::Family& family) {
  return absl::StrCat(family.lower_bound() ? "> " : "", family.variants());
}

bool CompilesKnown(const v1::PreflightResponse::Family& family) {
  return family.compiles() > 0 || (family.variants() == 0 && !family.lower_bound());
}

}  // namespace attune::cli
