#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/space/space.h"
#include "server/space/steps.h"

namespace attune::space {
namespace {

absl::Status Broken(const Rule& rule) {
  return absl::FailedPreconditionError(absl::StrCat(rule.reason, " (", rule.text, ")"));
}

// One depth-first walk over a family's product.
class Walk {
 public:
  Walk(std::shared_ptr<const Family> family, Evaluator& evaluator, const Stopped& stopped)
      : family_(std::move(family)), evaluator_(evaluator), steps_(stopped) {
    const auto& parameters = family_->manifest.parameters();
    // below_[i]: points below one choice of the first i parameters.
    below_.assign(parameters.size() + 1, 1);
    for (int i = parameters.size() - 1; i >= 0; --i) below_[i] = below_[i + 1] * parameters[i].values_size();
    values_.resize(parameters.size());
  }

  absl::StatusOr<Enumeration> Run() {
    result_.product = below_[0];
    if (const Rule* rule = evaluator_.Root(); rule != nullptr) {
      Remove(*rule, below_[0]);
    } else if (!Visit(0)) {
      if (steps_.stopped()) return absl::CancelledError("stopped");
      result_.counted = false;
      CountOnly();
    }
    return std::move(result_);
  }

 private:
  // False when the walk ends early.
  bool Visit(size_t depth) {
    if (evaluator_.Settled(depth) && (!result_.listed || result_.count + below_[depth] > kMostVariants)) {
      CountOnly();
      result_.count += below_[depth];
      return true;
    }
    if (depth == values_.size()) {
      ++result_.count;
      result_.variants.push_back({family_, values_});
      return true;
    }
    for (const int64_t value : family_->manifest.parameters(static_cast<int>(depth)).values()) {
      if (!steps_.Take()) return false;
      values_[depth] = value;
      if (const Rule* rule = evaluator_.Set(depth, value); rule != nullptr) {
        Remove(*rule, below_[depth + 1]);
      } else if (!Visit(depth + 1)) {
        return false;
      }
    }
    return true;
  }

  void CountOnly() {
    result_.listed = false;
    result_.variants = {};
  }

  // Rules stand in the order in which they first rejected something: the same on every run.
  void Remove(const Rule& rule, int64_t points) {
    const auto [it, first] = index_.try_emplace(&rule, result_.removed.size());
    if (first) result_.removed.push_back({rule.text, rule.reason, 0, rule.advice});
    result_.removed[it->second].count += points;
  }

  std::shared_ptr<const Family> family_;
  Evaluator& evaluator_;
  Steps steps_;
  std::vector<int64_t> below_;
  std::vector<int64_t> values_;
  std::map<const Rule*, size_t> index_;  // in result_.removed
  Enumeration result_;
};

}  // namespace

absl::Status Applies(const Family& family, const Problem& problem, const v1::Device& device) {
  absl::StatusOr<EvaluatorPool::Lease> evaluator = family.evaluators.Borrow(family.manifest);
  if (!evaluator.ok()) return evaluator.status();
  const Rule* limit = (*evaluator)->Bind(problem, device);
  return limit == nullptr ? absl::OkStatus() : Broken(*limit);
}

absl::StatusOr<Enumeration> Enumerate(const std::shared_ptr<const Family>& family, const Problem& problem,
                                      const v1::Device& device, const Stopped& stopped, const Selection& selection) {
  absl::StatusOr<EvaluatorPool::Lease> evaluator = family->evaluators.Borrow(family->manifest);
  if (!evaluator.ok()) return evaluator.status();
  (*evaluator)->Bind(problem, device, selection.advice);
  if (absl::Status status = (*evaluator)->Require(selection.where); !status.ok()) return status;
  return Walk(family, **evaluator, stopped).Run();
}

absl::Status Understands(const Family& family, const std::vector<std::string>& where) {
  absl::StatusOr<EvaluatorPool::Lease> evaluator = family.evaluators.Borrow(family.manifest);
  if (!evaluator.ok()) return evaluator.status();
  return (*evaluator)->Require(where);
}

absl::StatusOr<bool> IsTrueOf(const Variant& variant, const std::vector<std::string>& where, const Problem& problem,
                              const v1::Device& device) {
  absl::StatusOr<EvaluatorPool::Lease> evaluator = variant.family->evaluators.Borrow(variant.family->manifest);
  if (!evaluator.ok()) return evaluator.status();
  (*evaluator)->Assign(problem, device, variant.values, Advice::kIgnored);
  if (absl::Status status = (*evaluator)->Require(where); !status.ok()) return status;
  return (*evaluator)->HasRequired();
}

absl::Status Feasible(const Variant& variant, const Problem& problem, const v1::Device& device, Advice advice) {
  absl::StatusOr<EvaluatorPool::Lease> evaluator = variant.family->evaluators.Borrow(variant.family->manifest);
  if (!evaluator.ok()) return evaluator.status();
  const Rule* rule = (*evaluator)->Assign(problem, device, variant.values, advice);
  return rule == nullptr ? absl::OkStatus() : Broken(*rule);
}

}  // namespace attune::space
