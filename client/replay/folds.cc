#include "client/replay/folds.h"

#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"

namespace attune::replay {
namespace {

constexpr int64_t kMostDecoded = 16;
constexpr int64_t kManyKeys = 4096;

std::string MaskName(const Problem& problem) {
  switch (problem.mask) {
    case attune::v1::MASK_NONE:
      return "no mask";
    case attune::v1::MASK_WINDOW:
      return "a window";
    default:
      return "causal";
  }
}

std::vector<std::string> KindsOf(const Problem& problem) {
  std::vector<std::string> kinds = {absl::StrCat("head_dim ", problem.head_dim, ", ", MaskName(problem))};
  if (problem.seq_q <= kMostDecoded) kinds.emplace_back("decode");
  if (problem.heads_kv < problem.heads_q) kinds.emplace_back("grouped heads");
  if (problem.seq_kv > kManyKeys) kinds.push_back(absl::StrCat("more than ", kManyKeys, " keys"));
  return kinds;
}

}  // namespace

std::vector<Fold> OneByOne(const std::vector<Problem>& problems) {
  std::vector<Fold> folds;
  if (problems.size() < 2) return folds;
  for (size_t i = 0; i < problems.size(); ++i) folds.push_back({ToText(problems[i]), {i}});
  return folds;
}

std::vector<Fold> ByKind(const std::vector<Problem>& problems) {
  std::map<std::string, std::vector<size_t>> kinds;
  for (size_t i = 0; i < problems.size(); ++i) {
    for (const std::string& kind : KindsOf(problems[i])) kinds[kind].push_back(i);
  }
  std::vector<Fold> folds;
  for (auto& [name, held_out] : kinds) {
    if (2 * held_out.size() <= problems.size()) folds.push_back({name, held_out});
  }
  return folds;
}

}  // namespace attune::replay
