#include "server/space/builtins.h"

namespace attune::space {
namespace {

double MaskCode(v1::Mask mask) {
  switch (mask) {
    case v1::MASK_CAUSAL_TOP_LEFT:
      return 1;
    case v1::MASK_CAUSAL_BOTTOM_RIGHT:
      return 2;
    case v1::MASK_WINDOW:
      return 3;
    default:
      return 0;
  }
}

double KvDTypeCode(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_E4M3:
      return 1;
    case v1::DTYPE_E5M2:
      return 2;
    default:
      return 0;
  }
}

double Number(int64_t value) { return static_cast<double>(value); }

constexpr Builtin kBuiltins[] = {
    {"batch", [](const Problem& p, const v1::Device&) { return Number(p.batch); }},
    {"heads_q", [](const Problem& p, const v1::Device&) { return Number(p.heads_q); }},
    {"heads_kv", [](const Problem& p, const v1::Device&) { return Number(p.heads_kv); }},
    {"group", [](const Problem& p, const v1::Device&) { return Number(p.heads_q / p.heads_kv); }},
    {"seq_q", [](const Problem& p, const v1::Device&) { return Number(p.seq_q); }},
    {"seq_kv", [](const Problem& p, const v1::Device&) { return Number(p.seq_kv); }},
    {"head_dim", [](const Problem& p, const v1::Device&) { return Number(p.head_dim); }},
    {"dtype_bytes", [](const Problem& p, const v1::Device&) { return Number(DTypeBytes(p.dtype)); }},
    {"is_bf16", [](const Problem& p, const v1::Device&) { return p.dtype == v1::DTYPE_BF16 ? 1.0 : 0.0; }},
    {"mask", [](const Problem& p, const v1::Device&) { return MaskCode(p.mask); }},
    {"causal_offset",
     [](const Problem& p, const v1::Device&) { return p.mask == v1::MASK_NONE ? 0.0 : Number(CausalOffset(p)); }},
    {"window", [](const Problem& p, const v1::Device&) { return Number(p.window); }},
    {"softcap", [](const Problem& p, const v1::Device&) { return p.softcap; }},
    {"has_lse", [](const Problem& p, const v1::Device&) { return p.lse ? 1.0 : 0.0; }},
    {"is_bshd", [](const Problem& p, const v1::Device&) { return p.layout == v1::LAYOUT_BSHD ? 1.0 : 0.0; }},
    {"sinks", [](const Problem& p, const v1::Device&) { return p.sinks ? 1.0 : 0.0; }},
    {"is_varlen", [](const Problem& p, const v1::Device&) { return p.varlen ? 1.0 : 0.0; }},
    {"page_size", [](const Problem& p, const v1::Device&) { return Number(p.page_size); }},
    {"kv_dtype", [](const Problem& p, const v1::Device&) { return KvDTypeCode(p.kv_dtype); }},
    {"kv_bytes", [](const Problem& p, const v1::Device&) { return Number(DTypeBytes(KvDType(p))); }},

    {"sm_count", [](const Problem&, const v1::Device& d) { return Number(d.compute_units()); }},
    {"warp_size", [](const Problem&, const v1::Device& d) { return Number(d.warp_size()); }},
    {"max_threads", [](const Problem&, const v1::Device& d) { return Number(d.max_threads_per_block()); }},
    {"max_warps_per_sm", [](const Problem&, const v1::Device& d) { return Number(d.max_warps_per_sm()); }},
    {"max_blocks_per_sm", [](const Problem&, const v1::Device& d) { return Number(d.max_blocks_per_sm()); }},
    {"registers_per_sm", [](const Problem&, const v1::Device& d) { return Number(d.registers_per_sm()); }},
    {"max_registers", [](const Problem&, const v1::Device& d) { return Number(d.max_registers_per_thread()); }},
    {"shared_per_block", [](const Problem&, const v1::Device& d) { return Number(d.shared_bytes_per_block()); }},
    {"shared_per_sm", [](const Problem&, const v1::Device& d) { return Number(d.shared_bytes_per_sm()); }},
    {"compute_capability", [](const Problem&, const v1::Device& d) { return Number(d.compute_capability()); }},
    {"l2_bytes", [](const Problem&, const v1::Device& d) { return Number(d.l2_bytes()); }},
};

}  // namespace

absl::Span<const Builtin> Builtins() { return kBuiltins; }

}  // namespace attune::space
