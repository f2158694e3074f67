// Compiled code in the driver: each artifact is loaded once a runtime, however many plans launch its kernels. Private
// to client/cpp/launch.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_CODE_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_CODE_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/launch/gpu.h"
#include "client/cpp/launch/plan.h"

namespace attune::launch {

// Thread-safe. Nothing is ever unloaded: a graph may hold a kernel as long as the process lives.
class Code {
 public:
  explicit Code(std::shared_ptr<const Gpu> gpu) : gpu_(std::move(gpu)) {}

  // Whether an answer with this artifact can be made a plan without the artifact's bytes.
  bool Has(absl::string_view sha256) const;

  // Loads what is not loaded yet; may be called while a stream is being captured.
  // InvalidArgument: no artifact, one that is not CUDA's, one that does not fit the recipe, or for another GPU;
  // DataLoss: its bytes are not those of artifact_sha256.
  absl::StatusOr<PlanPtr> PlanOf(const AnswerPtr& answer, const Problem& problem);

 private:
  absl::StatusOr<cuda::ModuleHandle> Load(const v1::GetBestResponse& answer);
  absl::StatusOr<std::vector<void*>> Functions(cuda::ModuleHandle module, const v1::LaunchRecipe& recipe) const;

  const std::shared_ptr<const Gpu> gpu_;
  mutable std::mutex mutex_;  // guards what follows, and what plans set of a function
  absl::flat_hash_map<std::string, cuda::ModuleHandle> modules_;  // by the artifact's SHA-256
};

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_CODE_H_
