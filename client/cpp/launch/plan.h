// An answer's recipe in the driver's form, with its code loaded: all that a launch needs but the tensors, the stream
// and the scratch memory.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_PLAN_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_PLAN_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "attune/v1/launch.pb.h"
#include "client/cpp/answer_cache.h"
#include "client/cpp/launch/tensors.h"

namespace attune::launch {

class Gpu;

// Immutable, so that any number of threads may enqueue it at once, each with scratch memory of its own. May outlive its
// Runtime.
class Plan {
 public:
  // `functions` has the kernel (CUfunction) of each launch. Used by Runtime.
  // InvalidArgument names what in the recipe is wrong; FailedPrecondition when the GPU cannot run it.
  static absl::StatusOr<std::shared_ptr<const Plan>> Make(std::shared_ptr<const Gpu> gpu, AnswerPtr answer,
                                                          const Problem& problem, absl::Span<void* const> functions);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const Problem& problem() const { return problem_; }
  // What the server answered, without the code.
  const v1::GetBestResponse& answer() const { return *answer_; }
  size_t launches() const;

  // Device memory that a run works in. Its first `zeroed_bytes` must be all zero bytes before the first run in it; each
  // run leaves them so. Both are multiples of 256; 0: none is needed.
  size_t scratch_bytes() const { return zeroed_bytes_ + other_bytes_; }
  size_t zeroed_bytes() const { return zeroed_bytes_; }

  // Launches on `stream`, which may be capturing, in scratch memory of the caller's: `scratch_bytes` at a multiple of
  // 256 that no other run uses before this one has ended. Calls nothing but the driver, allocates nothing, waits for
  // nothing. The tensors must live until the stream has done the work.
  //
  // InvalidArgument names a tensor that is wrong. Otherwise the driver's error: Aborted after a fault of earlier work,
  // FailedPrecondition for too few resources, Internal. When a launch after the first one failed, zeroed memory is
  // zeroed again, so that `scratch` can be used on.
  absl::Status Enqueue(const Tensors& tensors, Stream stream, Address scratch) const;

  // The same with the two parts of the scratch memory apart, and the GPU's context current. Used by Runtime.
  absl::Status EnqueueInContext(const Tensors& tensors, Stream stream, Address zeroed, Address other) const;
  size_t other_bytes() const { return other_bytes_; }

 private:
  struct Launch;
  struct Map;
  struct Slots;
  Plan(std::shared_ptr<const Gpu> gpu, AnswerPtr answer, const Problem& problem);
  absl::Status LayOutScratch(const v1::LaunchRecipe& recipe);
  absl::Status AddLaunch(const v1::KernelLaunch& launch, void* function);
  absl::Status AddArgument(const v1::KernelArg& arg, Launch& launch) const;
  absl::Status AddMap(const v1::TensorMap& map, Launch& launch) const;
  absl::StatusOr<int> SlotOf(const v1::KernelArg::Buffer& buffer) const;
  // Writes the map of a tensor in `buffer` to `place`: zeros for a null one.
  absl::Status Show(const Map& map, Address buffer, std::byte* place) const;
  absl::Status EnqueueLaunch(const Launch& launch, const Slots& slots, Stream stream) const;

  const std::shared_ptr<const Gpu> gpu_;
  const AnswerPtr answer_;
  const Problem problem_;
  const unsigned wanted_;  // TensorsOf(problem_)
  struct ScratchPlace {
    bool zeroed = false;
    bool is_empty = false;
    size_t offset = 0;
  };
  std::vector<ScratchPlace> scratch_;
  size_t zeroed_bytes_ = 0;
  size_t other_bytes_ = 0;
  std::vector<Launch> launches_;
};

using PlanPtr = std::shared_ptr<const Plan>;

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_PLAN_H_
