// A candidate's code and scratch on the device, ready to be bound to inputs and outputs.
#ifndef ATTUNE_SERVER_VERIFY_LOADED_CANDIDATE_H_
#define ATTUNE_SERVER_VERIFY_LOADED_CANDIDATE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/device/device.h"
#include "server/verify/guarded_buffer.h"
#include "server/verify/inspection.h"
#include "server/verify/module_cache.h"

namespace attune::verify {

// Must not outlive its device.
class LoadedCandidate {
 public:
  // Allocates the recipe's scratch between red zones; zeroes what must be zero before the first run.
  // ResourceExhausted when the scratch does not fit.
  static absl::StatusOr<LoadedCandidate> Create(device::Device& device, ModuleCache& modules,
                                                absl::string_view artifact, const v1::LaunchRecipe& recipe);

  // `buffers.scratch` is set here. FailedPrecondition when the device cannot run the recipe.
  absl::StatusOr<std::unique_ptr<device::Runnable>> Bind(device::Bindings buffers);

  // Fills all scratch but that which the kernel keeps zero.
  absl::Status PoisonScratch(std::byte value);
  // As TimedCandidate's.
  absl::StatusOr<std::string> ScratchDamage(Inspection* inspection) const;

 private:
  absl::StatusOr<bool> ScratchIsIntact(Inspection& inspection) const;
  LoadedCandidate(device::Device& device, std::shared_ptr<device::Module> module, const v1::LaunchRecipe& recipe)
      : device_(&device), module_(std::move(module)), recipe_(recipe) {}

  device::Device* device_;
  std::shared_ptr<device::Module> module_;
  v1::LaunchRecipe recipe_;
  std::vector<GuardedBuffer> scratch_;  // in the recipe's order
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_LOADED_CANDIDATE_H_
