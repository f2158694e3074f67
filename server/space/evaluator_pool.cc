#include "server/space/evaluator_pool.h"

#include <utility>

namespace attune::space {

EvaluatorPool::Lease::Lease(const EvaluatorPool* pool, std::unique_ptr<Evaluator> evaluator)
    : pool_(pool), evaluator_(std::move(evaluator)) {}

EvaluatorPool::Lease::~Lease() {
  if (evaluator_ == nullptr) return;
  std::lock_guard lock(pool_->mutex_);
  pool_->idle_.push_back(std::move(evaluator_));
}

absl::StatusOr<EvaluatorPool::Lease> EvaluatorPool::Borrow(const family::v1::KernelFamily& manifest) const {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Evaluator> evaluator = std::move(idle_.back());
      idle_.pop_back();
      return Lease(this, std::move(evaluator));
    }
  }
  absl::StatusOr<std::unique_ptr<Evaluator>> evaluator = Evaluator::Compile(manifest);
  if (!evaluator.ok()) return evaluator.status();
  return Lease(this, *std::move(evaluator));
}

}  // namespace attune::space
