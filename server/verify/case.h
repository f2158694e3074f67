// One input distribution of a problem on the device, with the results that candidates are held against.
#ifndef ATTUNE_SERVER_VERIFY_CASE_H_
#define ATTUNE_SERVER_VERIFY_CASE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/device/device.h"
#include "server/verify/case_inputs.h"
#include "server/verify/guarded_buffer.h"
#include "server/verify/inspection.h"
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
// What is not held on the host is drawn by the inspector or, without one, by the host as it goes.
absl::StatusOr<InputBuffers> PutInputs(device::Device& device, const Problem& problem, const CaseInputs& inputs,
                                       Inspection* inspection);
// Puts tensors of the same sizes into the buffers and fills their zones again.
absl::Status Restore(InputBuffers& buffers, const CaseInputs& inputs, Inspection* inspection);
// Empty, or which input a kernel has changed or written around. The host looks.
absl::StatusOr<std::string> InputDamage(const InputBuffers& buffers, const CaseInputs& inputs);
// What the inspector must find of a buffer: its zones, and contents of this digest; and of all inputs, which have their
// digests.
void Expect(const GuardedBuffer& buffer, uint64_t digest, Inspection& inspection, Inspection::Expected& expected);
void Expect(const InputBuffers& buffers, const CaseInputs& inputs, Inspection& inspection,
            Inspection::Expected& expected);

struct Case {
  Distribution distribution;
  CaseInputs inputs;
  InputBuffers buffers;
  HostResult exact;        // of the fp32 reference kernel
  double plain_error = 0;  // max |plain - exact| over O
  // exact.o on the device, and its digest; none without an inspection.
  std::optional<GuardedBuffer> reference = {};
  uint64_t reference_digest = 0;
};

// Frees what a case has on the device.
void FreeMemory(Case& of);
// Puts its inputs into new memory, and its reference results, too, when there is an `inspection`, which is the one
// under whose key the case's digests are. As the device says.
absl::Status PutAgain(device::Device& device, const Problem& problem, Inspection* inspection, Case& of);
// The reference results alone.
absl::Status PutReference(device::Device& device, Inspection* inspection, Case& of);

// The reference kernels of a problem and the fp32 memory that they write to.
class References {
 public:
  // `inspection` may be null, and outlives it otherwise.
  static absl::StatusOr<References> Create(device::Device& device, const Problem& problem,
                                           const worker::v1::PrepareRequest& request, Inspection* inspection);

  // Computes what is right for the inputs. Internal when a reference is not finite, writes outside its
  // buffers, or, for problems small enough to compute on the host, disagrees with fp64.
  absl::StatusOr<Case> MakeCase(Distribution distribution, CaseInputs inputs);

 private:
  References(device::Device& device, const Problem& problem, Inspection* inspection, LoadedCandidate exact,
             LoadedCandidate plain, GuardedBuffer o, GuardedBuffer lse)
      : device_(&device),
        problem_(problem),
        inspection_(inspection),
        exact_(std::move(exact)),
        plain_(std::move(plain)),
        o_(std::move(o)),
        lse_(std::move(lse)) {}

  // Writes O to `o`.
  absl::Status Run(LoadedCandidate& kernel, const InputBuffers& inputs, GuardedBuffer& o);
  absl::Status RunExact(Case& made);
  // Sets plain_error.
  absl::Status RunPlain(Case& made);
  // Internal unless all of O is finite, which `on_device` says when the inspector has found so, and nothing has been
  // written around it. Downloads it to `values`, when that is not null.
  absl::Status Accept(absl::string_view name, const GuardedBuffer& o, bool on_device, std::vector<float>* values) const;
  absl::Status CheckAgainstHost(const Case& made) const;

  device::Device* device_;
  Problem problem_;
  Inspection* inspection_;
  LoadedCandidate exact_, plain_;
  GuardedBuffer o_, lse_;
  std::vector<float> plain_o_;
};

// A tensor's memory as bytes.
template <typename T>
absl::Span<const std::byte> AsBytes(const std::vector<T>& values) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T));
}

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_CASE_H_
