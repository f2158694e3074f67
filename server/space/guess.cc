// The variant to answer with before anything has been measured.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/space/evaluator.h"
#include "server/space/space.h"
#include "server/space/steps.h"

namespace attune::space {
namespace {

constexpr int64_t kCtasPerSm = 4;
// Guesses answer look-ups.
constexpr int64_t kMostGuessSteps = 100'000;
const Stopped kNeverStopped = nullptr;

// What is compared of two feasible variants, best first: fewest steps from the guess along the compile-time
// parameters' values, CTAs until there are enough, fewest steps along the launch-time ones.
struct Rank {
  int64_t compile_steps;
  int64_t missing_ctas;
  int64_t launch_steps;

  friend bool operator<(const Rank& a, const Rank& b) {
    return std::tie(a.compile_steps, a.missing_ctas, a.launch_steps) <
           std::tie(b.compile_steps, b.missing_ctas, b.launch_steps);
  }
};

class Search {
 public:
  Search(const std::shared_ptr<const Family>& family, Evaluator& evaluator, const v1::Device& device,
         const Accepted& accepted)
      : family_(family),
        manifest_(family->manifest),
        evaluator_(evaluator),
        accepted_(accepted),
        wanted_ctas_(kCtasPerSm * device.compute_units()) {
    const auto& launches = manifest_.launches();
    main_ = &*std::find_if(launches.begin(), launches.end(), [](const auto& launch) { return launch.main(); });
    for (const family::v1::Parameter& parameter : manifest_.parameters()) orders_.push_back(NearestFirst(parameter));
    values_.resize(manifest_.parameters_size());
  }

  // Nothing when no variant is feasible.
  std::optional<std::vector<int64_t>> Run() {
    if (evaluator_.Root() == nullptr) Descend(0, 0, 0);
    return best_;
  }

 private:
  struct Step {
    int64_t value;
    int64_t steps;
  };

  static std::vector<Step> NearestFirst(const family::v1::Parameter& parameter) {
    const auto& values = parameter.values();
    const int64_t guess = std::find(values.begin(), values.end(), parameter.guess()) - values.begin();
    std::vector<Step> order;
    order.reserve(values.size());
    for (int i = 0; i < values.size(); ++i) order.push_back({values[i], std::abs(i - guess)});
    std::stable_sort(order.begin(), order.end(), [](const Step& a, const Step& b) { return a.steps < b.steps; });
    return order;
  }

  void Descend(size_t depth, int64_t compile_steps, int64_t launch_steps) {
    if (depth == values_.size()) return Consider({compile_steps, MissingCtas(), launch_steps});
    const bool launch_time = IsLaunchTime(depth);
    for (const auto& [value, steps] : orders_[depth]) {
      const int64_t farther = compile_steps + (launch_time ? 0 : steps);
      const int64_t launches = launch_steps + (launch_time ? steps : 0);
      // Values further on in the list are no nearer.
      if (!CouldBeBetter(farther, launches) || !steps_.Take()) return;
      values_[depth] = value;
      if (evaluator_.Set(depth, value) != nullptr) continue;
      Descend(depth + 1, farther, launches);
    }
  }

  // Whether a variant with no fewer steps than these could be better than the best so far.
  bool CouldBeBetter(int64_t compile_steps, int64_t launch_steps) const {
    return !best_ || Rank{compile_steps, 0, launch_steps} < rank_;
  }

  void Consider(const Rank& rank) {
    if ((best_ && !(rank < rank_)) || !evaluator_.MayBeGuessed()) return;
    if (!Accepts()) return;
    rank_ = rank;
    best_ = values_;
  }

  // A code is asked for once, in however many ways it can be launched.
  bool Accepts() {
    if (!accepted_) return true;
    std::vector<int64_t> compile_values = values_;
    for (size_t i = 0; i < compile_values.size(); ++i) {
      if (IsLaunchTime(i)) compile_values[i] = 0;
    }
    if (rejected_.contains(compile_values)) return false;
    if (accepted_({family_, values_})) return true;
    rejected_.insert(std::move(compile_values));
    return false;
  }

  bool IsLaunchTime(size_t parameter) const {
    return manifest_.parameters(static_cast<int>(parameter)).binding() == family::v1::Parameter::BINDING_LAUNCH_TIME;
  }

  int64_t MissingCtas() const {
    double ctas = 1;
    for (const std::string* grid : {&main_->grid_x(), &main_->grid_y(), &main_->grid_z()}) {
      if (!grid->empty()) ctas *= evaluator_.Value(*grid);
    }
    if (ctas >= static_cast<double>(wanted_ctas_)) return 0;
    return ctas >= 1 ? wanted_ctas_ - static_cast<int64_t>(ctas) : wanted_ctas_;
  }

  const std::shared_ptr<const Family>& family_;
  const family::v1::KernelFamily& manifest_;
  Evaluator& evaluator_;
  const Accepted& accepted_;
  Steps steps_{kNeverStopped, kMostGuessSteps};
  int64_t wanted_ctas_;
  const family::v1::Launch* main_;
  std::vector<std::vector<Step>> orders_;
  std::vector<int64_t> values_;
  std::set<std::vector<int64_t>> rejected_;  // codes, by their compile-time values; the others are 0
  std::optional<std::vector<int64_t>> best_;
  Rank rank_ = {};
};

}  // namespace

absl::StatusOr<Variant> Guess(const std::shared_ptr<const Family>& family, const Problem& problem,
                              const v1::Device& device, const Accepted& accepted) {
  if (absl::Status status = Applies(*family, problem, device); !status.ok()) {
    return absl::NotFoundError(absl::StrCat(family->name(), ": ", status.message()));
  }
  auto evaluator = family->evaluators.Borrow(family->manifest);
  if (!evaluator.ok()) return evaluator.status();
  std::optional<std::vector<int64_t>> values;
  for (const Advice advice : {Advice::kHeeded, Advice::kIgnored}) {
    (*evaluator)->Bind(problem, device, advice);
    values = Search(family, **evaluator, device, accepted).Run();
    if (values) break;
  }
  if (!values) {
    return absl::NotFoundError(
        absl::StrCat(family->name(), ": no variant is feasible for ", ToText(problem), " on ", device.id()));
  }
  return Variant{family, *std::move(values)};
}

}  // namespace attune::space
