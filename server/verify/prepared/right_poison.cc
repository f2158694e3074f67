#include "server/verify/prepared/right_poison.h"

#include "absl/random/random.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/verify/case.h"

namespace attune::verify {

absl::Status RightPoison::Plant(const Problem& problem, const HostResult& exact, absl::BitGenRef random,
                                Outputs& outputs) {
  if (!right_.has_value()) right_.emplace(problem, exact);
  const size_t shift = absl::Uniform<size_t>(random, 1, right_->o.size());
  if (inspection_ == nullptr) return outputs.Plant(*right_, shift);
  if (!on_device_.has_value()) {
    const absl::Span<const std::byte> o = AsBytes(right_->o);
    absl::StatusOr<GuardedBuffer> buffer = GuardedBuffer::Create(device_, "the right O", o.size());
    if (!buffer.ok()) return buffer.status();
    on_device_ = *std::move(buffer);
    if (absl::Status status = on_device_->Upload(o); !status.ok()) return status;
  }
  return outputs.PlantFrom(*on_device_, *right_, shift, *inspection_);
}

}  // namespace attune::verify
