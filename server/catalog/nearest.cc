#include "server/catalog/nearest.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/catalog/families.h"

namespace attune::catalog {
namespace {

double Octaves(int64_t a, int64_t b) { return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b))); }

}  // namespace

std::optional<double> Distance(const Problem& a, const Problem& b) {
  if (a.head_dim != b.head_dim || a.dtype != b.dtype || a.mask != b.mask) return std::nullopt;
  if (a.sinks != b.sinks || a.varlen != b.varlen || a.page_size != b.page_size) return std::nullopt;
  if ((a.softcap > 0) != (b.softcap > 0)) return std::nullopt;
  return Octaves(a.batch * a.heads_q, b.batch * b.heads_q) + Octaves(a.seq_q, b.seq_q) + Octaves(a.seq_kv, b.seq_kv);
}

absl::StatusOr<space::Variant> HeuristicVariant(const std::vector<std::shared_ptr<const space::Family>>& families,
                                                const Problem& problem, const v1::Device& device,
                                                const space::Accepted& accepted) {
  auto some = FamiliesFor(families, device.backend(), family::v1::ROLE_SEARCH);
  std::stable_sort(some.begin(), some.end(), [](const auto& a, const auto& b) {
    return a->manifest.guess_precedence() > b->manifest.guess_precedence();
  });
  for (const std::shared_ptr<const space::Family>& family : some) {
    if (!space::Applies(*family, problem, device).ok()) continue;
    absl::StatusOr<space::Variant> guess = space::Guess(family, problem, device, accepted);
    if (guess.ok()) return guess;
  }
  return absl::NotFoundError(absl::StrCat("no kernel family has a variant for ", ToText(problem), " on ", device.id()));
}

}  // namespace attune::catalog
