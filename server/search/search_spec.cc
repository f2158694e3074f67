#include "server/search/search_spec.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "server/catalog/families.h"
#include "server/search/strategy.h"
#include "server/search/todays_variant.h"

namespace attune::search {
namespace {

constexpr int64_t kMostLearned = 5000;  // of a space too large to list: as many as a model ranks in some 0.1 s

int64_t CountUnlearned(const CandidateSet& candidates, const SearchSpec& spec,
                       const std::optional<v1::Incumbent>& served) {
  const auto of = static_cast<int64_t>(candidates.all.size());
  const double enough = EnoughOf(spec.strategy.effort());
  if (enough > 0 && served.has_value() && served->has_claim() && served->claim().confidence() >= enough &&
      served->claim().of() == of) {
    return 0;
  }
  const int64_t known = std::count_if(candidates.all.begin(), candidates.all.end(),
                                      [](const Candidate& candidate) { return candidate.known.has_value(); });
  const int64_t limit = TrialLimit(spec.strategy, candidates.all.size());
  const int64_t left = limit == 0 ? of : std::max<int64_t>(limit - (spec.known_counts ? known : 0), 0);
  return std::min(left, of - known);
}

}  // namespace

std::vector<space::Variant> SeedsOf(std::vector<space::Variant> near, std::optional<space::Variant> expected) {
  if (expected.has_value()) {
    const std::string text = expected->ToText();
    const auto second = near.begin() + std::min<std::ptrdiff_t>(1, std::ssize(near));
    near.insert(second, *std::move(expected));
    bool seen = false;
    std::erase_if(near, [&](const space::Variant& seed) { return seed.ToText() == text && std::exchange(seen, true); });
  }
  if (near.size() > kMostSeeds) near.resize(kMostSeeds);
  return near;
}

absl::StatusOr<CandidateSet> CandidatesNow(const SearchSpec& spec, const std::optional<v1::Incumbent>& served,
                                           const std::vector<std::shared_ptr<const space::Family>>& families,
                                           store::Store& store, const space::Stopped& stopped) {
  std::vector<space::Variant> extra;
  if (served.has_value()) {
    absl::StatusOr<space::Variant> variant = TodaysVariant(served->trial(), spec.tuning_key, families);
    if (variant.ok()) extra.push_back(*std::move(variant));
  }
  Listing listing;
  listing.random = spec.strategy.kind() == v1::Strategy::KIND_RANDOM || Learns(spec.strategy.kind());
  listing.max_trials = Learns(spec.strategy.kind()) ? kMostLearned : spec.strategy.max_trials();
  listing.seed = spec.strategy.seed() != 0 ? spec.strategy.seed() : spec.seed;
  listing.selection = spec.selection;
  const auto searched =
      catalog::FamiliesFor(families, spec.tuning_key.device.backend(), family::v1::ROLE_SEARCH, spec.families);
  std::vector<space::Variant> seeds = spec.required;
  for (const space::Variant& seed : spec.seeds) {
    if (std::find(searched.begin(), searched.end(), seed.family) != searched.end()) seeds.push_back(seed);
  }
  extra.insert(extra.end(), seeds.begin(), seeds.end());
  absl::StatusOr<CandidateSet> set = GatherCandidates(store, searched, extra, spec.tuning_key, listing, stopped);
  if (!set.ok()) return set.status();
  for (const catalog::TuningKey& sister : spec.sisters) {
    if (absl::Status status = AddKnownOf(sister, store, *set, spec.retry_known); !status.ok()) return status;
  }
  if (spec.check_all) DoubtSlow(*set);
  if (served.has_value()) set->incumbent = set->Find(served->trial().variant().text());
  std::vector<size_t> first;
  for (const space::Variant& seed : seeds) first.push_back(*set->Find(seed.ToText()));
  set->guesses.insert(set->guesses.begin(), first.begin(), first.end());
  return set;
}

int64_t CountUntried(const CandidateSet& candidates, const SearchSpec& spec,
                     const std::optional<v1::Incumbent>& served) {
  if (Learns(spec.strategy.kind())) return CountUnlearned(candidates, spec, served);
  v1::Strategy untimed = spec.strategy;
  untimed.clear_max_time();
  const std::unique_ptr<Strategy> strategy =
      MakeStrategy(untimed, candidates.ToField(), spec.seed, [] { return absl::ZeroDuration(); });
  int64_t untried = 0;
  while (const std::optional<size_t> index = strategy->Speculate()) {
    if (!candidates.all[*index].known.has_value()) ++untried;
  }
  return untried;
}

}  // namespace attune::search
