// Evaluators of one family, compiled when first needed and lent to one thread at a time.
#ifndef ATTUNE_SERVER_SPACE_EVALUATOR_POOL_H_
#define ATTUNE_SERVER_SPACE_EVALUATOR_POOL_H_

#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/family/v1/family.pb.h"
#include "server/space/evaluator.h"

namespace attune::space {

// Thread-safe. A copy starts empty: whoever copies a family may change its manifest before it is first used.
class EvaluatorPool {
 public:
  // Goes back to its pool when destroyed; the pool lives longer.
  class Lease {
   public:
    Lease(const EvaluatorPool* pool, std::unique_ptr<Evaluator> evaluator);
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    Evaluator* operator->() const { return evaluator_.get(); }
    Evaluator& operator*() const { return *evaluator_; }

   private:
    const EvaluatorPool* pool_;
    std::unique_ptr<Evaluator> evaluator_;
  };

  EvaluatorPool() = default;
  EvaluatorPool(const EvaluatorPool&) {}
  EvaluatorPool& operator=(const EvaluatorPool&) = delete;

  // `manifest` is the same on every call. Evaluator::Compile's errors.
  absl::StatusOr<Lease> Borrow(const family::v1::KernelFamily& manifest) const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Evaluator>> idle_;
};

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_EVALUATOR_POOL_H_
