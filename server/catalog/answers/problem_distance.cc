#include "server/catalog/answers/problem_distance.h"

#include <cmath>

namespace attune::catalog {
double Octaves(int64_t a, int64_t b) { return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b))); }

std::optional<double> Distance(const Problem& a, const Problem& b) {
  if (a.head_dim != b.head_dim || a.dtype != b.dtype || a.kv_dtype != b.kv_dtype || a.mask != b.mask)
    return std::nullopt;
  if (a.sinks != b.sinks || a.varlen != b.varlen || a.page_size != b.page_size) return std::nullopt;
  if ((a.softcap > 0) != (b.softcap > 0)) return std::nullopt;
  return Octaves(a.batch * a.heads_q, b.batch * b.heads_q) + Octaves(a.heads_q * b.heads_kv, b.heads_q * a.heads_kv) +
         Octaves(a.seq_q, b.seq_q) + Octaves(a.seq_kv, b.seq_kv);
}

}  // namespace attune::catalog
