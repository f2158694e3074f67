#include <cmath>

#include "server/space/evaluator.h"
#include "server/space/space.h"

namespace attune::space {

std::vector<std::string> FeatureNames(const Family& family) {
  std::vector<std::string> names;
  for (const family::v1::Parameter& parameter : family.manifest.parameters()) names.push_back(parameter.name());
  for (const auto& let : family.manifest.lets()) names.push_back(let.name());
  return names;
}

absl::StatusOr<std::vector<double>> Features(const Variant& variant, const Problem& problem, const v1::Device& device) {
  const absl::StatusOr<EvaluatorPool::Lease> evaluator = variant.family->evaluators.Borrow(variant.family->manifest);
  if (!evaluator.ok()) return evaluator.status();
  (*evaluator)->Assign(problem, device, variant.values, Advice::kIgnored);
  std::vector<double> features(variant.values.begin(), variant.values.end());
  for (const auto& let : variant.family->manifest.lets()) {
    const double value = (*evaluator)->Named(let.name());
    features.push_back(std::isfinite(value) ? value : 0);
  }
  return features;
}

}  // namespace attune::space
