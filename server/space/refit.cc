// A variant tuned for one problem, launched as another problem wants it.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/space/evaluator.h"
#include "server/space/space.h"
#include "server/space/steps.h"

namespace attune::space {
namespace {

// Refits answer look-ups.
constexpr int64_t kMostRefitSteps = 20'000;
const Stopped kNobodyStops = nullptr;

class Refitting {
 public:
  Refitting(const Variant& variant, Evaluator& evaluator)
      : manifest_(variant.family->manifest), from_(variant.values), evaluator_(evaluator), values_(variant.values) {}

  // Nothing when no choice of launch-time parameters is advised.
  std::optional<std::vector<int64_t>> Run() {
    if (evaluator_.Root() == nullptr) Descend(0, 0);
    return best_;
  }

 private:
  struct Step {
    int64_t value;
    int64_t steps;
  };

  // The values that parameter `index` may take, the nearest to today's first.
  std::vector<Step> Choices(size_t index) const {
    const family::v1::Parameter& parameter = manifest_.parameters(static_cast<int>(index));
    if (parameter.binding() != family::v1::Parameter::BINDING_LAUNCH_TIME) return {{from_[index], 0}};
    const auto& values = parameter.values();
    const int64_t today = std::find(values.begin(), values.end(), from_[index]) - values.begin();
    std::vector<Step> choices;
    for (int i = 0; i < values.size(); ++i) choices.push_back({values[i], std::abs(i - today)});
    std::stable_sort(choices.begin(), choices.end(), [](const Step& a, const Step& b) { return a.steps < b.steps; });
    return choices;
  }

  void Descend(size_t index, int64_t steps) {
    if (index == values_.size()) {
      best_ = values_;
      fewest_ = steps;
      return;
    }
    for (const auto& [value, farther] : Choices(index)) {
      // Values further on in the list are no nearer.
      if ((best_.has_value() && steps + farther >= fewest_) || !steps_.Take()) return;
      values_[index] = value;
      if (evaluator_.Set(index, value) == nullptr) Descend(index + 1, steps + farther);
    }
  }

  const family::v1::KernelFamily& manifest_;
  const std::vector<int64_t>& from_;
  Evaluator& evaluator_;
  Steps steps_{kNobodyStops, kMostRefitSteps};
  std::vector<int64_t> values_;
  std::optional<std::vector<int64_t>> best_;
  int64_t fewest_ = 0;
};

}  // namespace

absl::StatusOr<Variant> Refit(const Variant& variant, const Problem& problem, const v1::Device& device) {
  auto evaluator = variant.family->evaluators.Borrow(variant.family->manifest);
  if (!evaluator.ok()) return evaluator.status();
  (*evaluator)->Bind(problem, device);
  std::optional<std::vector<int64_t>> values = Refitting(variant, **evaluator).Run();
  if (values.has_value()) return Variant{variant.family, *std::move(values)};
  return absl::NotFoundError(
      absl::StrCat(variant.ToText(), " cannot be launched for ", ToText(problem), " in a way that is advised"));
}

}  // namespace attune::space
