#include "absl/strings/str_cat.h"
#include "server/device/device.h"

namespace attune::device {

absl::StatusOr<BufferView> ViewOf(const v1::KernelArg::Buffer& argument, const Bindings& bindings) {
  switch (argument.role()) {
    case v1::BUFFER_ROLE_Q:
      return bindings.q;
    case v1::BUFFER_ROLE_K:
      return bindings.k;
    case v1::BUFFER_ROLE_V:
      return bindings.v;
    case v1::BUFFER_ROLE_O:
      return bindings.o;
    case v1::BUFFER_ROLE_LSE:
      return bindings.lse;
    case v1::BUFFER_ROLE_SINKS:
      return bindings.sinks;
    case v1::BUFFER_ROLE_Q_BOUNDS:
      return bindings.q_bounds;
    case v1::BUFFER_ROLE_KV_BOUNDS:
      return bindings.kv_bounds;
    case v1::BUFFER_ROLE_KV_LENGTHS:
      return bindings.kv_lengths;
    case v1::BUFFER_ROLE_PAGE_TABLE:
      return bindings.page_table;
    case v1::BUFFER_ROLE_K_SCALE:
      return bindings.k_scale;
    case v1::BUFFER_ROLE_V_SCALE:
      return bindings.v_scale;
    case v1::BUFFER_ROLE_SCRATCH:
      if (argument.scratch() < 0 || static_cast<size_t>(argument.scratch()) >= bindings.scratch.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("scratch is ", argument.scratch(), "; ", bindings.scratch.size(), " buffers are bound"));
      }
      return bindings.scratch[static_cast<size_t>(argument.scratch())];
    default:
      return absl::InvalidArgumentError(absl::StrCat("role is ", argument.role(), "; allowed: Q to V_SCALE"));
  }
}

}  // namespace attune::device
