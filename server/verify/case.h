// One input distribution of a problem on the device, with the results that candidates are held against.
#ifndef ATTUNE_SERVER_VERIFY_CASE_H_
#define ATTUNE_SERVER_VERIFY_CASE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/device/device.h"
#include "server/verify/guarded_buffer.h"
#include "server/verify/loaded_candidate.h"
#include "server/verify/verify.h"

namespace attune::verify {

// All inputs on the device, in the order of InputParts; a null view for what the problem does not have.
struct InputBuffers {
  std::vector<GuardedBuffer> parts;
  device::Bindings bindings() const;
};
// Bytes of the red zones around Q, K, V and O: the rows of a whole tile, or a page if that has more, up to 1 MiB.
size_t ZoneBytes(const Problem& problem);
absl::StatusOr<InputBuffers> UploadInputs(device::Device& device, const Problem& problem, const Tensors& inputs);
// Puts tensors of the same sizes into the buffers and fills their zones again.
absl::Status Restore(InputBuffers& buffers, const Tensors& inputs);
// Empty, or which input a kernel has changed or written around.
absl::StatusOr<std::string> InputDamage(const InputBuffers& buffers, const Tensors& inputs);

struct Case {
  Distribution distribution;
  Tensors inputs;
  InputBuffers buffers;
  HostResult exact;        // of the fp32 reference kernel
  double plain_error = 0;  // max |plain - exact| over O
};

// The reference kernels of a problem and the fp32 memory that they write to.
class References {
 public:
  static absl::StatusOr<References> Create(device::Device& device, const Problem& problem,
                                           const worker::v1::PrepareRequest& request);

  // Computes what is right for the inputs. Internal when a reference is not finite, writes outside its
  // buffers, or, for problems small enough to compute on the host, disagrees with fp64.
  absl::StatusOr<Case> MakeCase(Distribution distribution, Tensors inputs);

 private:
  References(device::Device& device, const Problem& problem, LoadedCandidate exact, LoadedCandidate plain,
             GuardedBuffer o, GuardedBuffer lse)
      : device_(&device),
        problem_(problem),
        exact_(std::move(exact)),
        plain_(std::move(plain)),
        o_(std::move(o)),
        lse_(std::move(lse)) {}

  absl::StatusOr<HostResult> Run(LoadedCandidate& kernel, absl::string_view name, const InputBuffers& inputs);
  absl::Status CheckAgainstHost(const Case& made) const;

  device::Device* device_;
  Problem problem_;
  LoadedCandidate exact_, plain_;
  GuardedBuffer o_, lse_;
};

// A tensor's memory as bytes.
template <typename T>
absl::Span<const std::byte> AsBytes(const std::vector<T>& values) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T));
}

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_CASE_H_
