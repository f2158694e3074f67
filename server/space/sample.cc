#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "server/space/space.h"
#include "server/space/steps.h"

namespace attune::space {
namespace {

class Draw {
 public:
  Draw(const family::v1::KernelFamily& manifest, Evaluator& evaluator, uint64_t seed, Steps& steps)
      : manifest_(manifest), evaluator_(evaluator), random_(seed), steps_(steps) {
    for (const family::v1::Parameter& parameter : manifest.parameters()) {
      std::vector<int>& order = orders_.emplace_back(parameter.values_size());
      std::iota(order.begin(), order.end(), 0);
    }
    values_.resize(manifest.parameters_size());
  }

  // A feasible point; false where it ended without one.
  bool Once() {
    for (size_t depth = 0; depth < values_.size(); ++depth) {
      if (!Choose(depth)) return false;
    }
    return true;
  }
  const std::vector<int64_t>& values() const { return values_; }

 private:
  // The first value of a shuffled list that the rules leave is any of those they leave with equal chance. Taking the
  // remainder favours early values by less than values / 2^64.
  bool Choose(size_t depth) {
    std::vector<int>& order = orders_[depth];
    for (size_t i = 0; i < order.size(); ++i) {
      if (!steps_.Take()) return false;
      std::swap(order[i], order[i + random_() % (order.size() - i)]);
      values_[depth] = manifest_.parameters(static_cast<int>(depth)).values(order[i]);
      if (evaluator_.Set(depth, values_[depth]) == nullptr) return true;
    }
    return false;
  }

  const family::v1::KernelFamily& manifest_;
  Evaluator& evaluator_;
  std::mt19937_64 random_;
  Steps& steps_;
  std::vector<std::vector<int>> orders_;  // of each parameter's values
  std::vector<int64_t> values_;
};

}  // namespace

absl::StatusOr<std::vector<Variant>> Sample(const std::shared_ptr<const Family>& family, const Problem& problem,
                                            const v1::Device& device, int64_t count, uint64_t seed,
                                            const Stopped& stopped, const Selection& selection) {
  absl::StatusOr<EvaluatorPool::Lease> evaluator = family->evaluators.Borrow(family->manifest);
  if (!evaluator.ok()) return evaluator.status();
  (*evaluator)->Bind(problem, device, selection.advice);
  if (absl::Status status = (*evaluator)->Require(selection.where); !status.ok()) return status;
  std::vector<Variant> drawn;
  if ((*evaluator)->Root() != nullptr) return drawn;
  Steps steps(stopped);
  Draw draw(family->manifest, **evaluator, seed, steps);
  std::set<std::vector<int64_t>> seen;
  while (static_cast<int64_t>(drawn.size()) < count && steps.Take()) {
    if (draw.Once() && seen.insert(draw.values()).second) drawn.push_back({family, draw.values()});
  }
  if (steps.stopped()) return absl::CancelledError("stopped");
  return drawn;
}

}  // namespace attune::space
