#include "server/store/rows/incumbent_columns.h"

namespace attune::store {
namespace {

using ReadById = absl::FunctionRef<absl::StatusOr<v1::Incumbent>(int64_t)>;

// Whether going back from `served` to `before` would change no more than a time, or bring back a pin that was lifted.
bool ServesTheSame(int64_t before, int64_t served, ReadById read) {
  const absl::StatusOr<v1::Incumbent> one = read(before);
  const absl::StatusOr<v1::Incumbent> other = read(served);
  return one.ok() && other.ok() && one->trial().variant().text() == other->trial().variant().text() &&
         (one->pinned() || !other->pinned());
}

// Why nothing goes back to `to`, which is none of `before`, the ones before `served`; when empty, to any of them.
absl::Status NoWayBackTo(absl::string_view to, int64_t served, const std::vector<int64_t>& before,
                         absl::string_view whose, ReadById read) {
  std::vector<std::string> names;
  for (const int64_t id : before) names.push_back(IncumbentName(id));
  if (to.empty()) return NoOtherBefore(IncumbentName(served), names, whose);
  std::optional<v1::Incumbent> named;
  if (const std::optional<int64_t> id = IdOf(kIncumbents, to); id.has_value()) {
    absl::StatusOr<v1::Incumbent> found = read(*id);
    if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
    if (found.ok()) named = *std::move(found);
  }
  return NoWayBack(to, IncumbentName(served), names, named, whose);
}

}  // namespace

std::string BesideOf(const v1::Incumbent& incumbent) {
  v1::Incumbent beside;
  *beside.mutable_ties() = incumbent.ties();
  if (incumbent.has_claim()) *beside.mutable_claim() = incumbent.claim();
  *beside.mutable_alternatives() = incumbent.alternatives();
  return beside.SerializeAsString();
}

absl::Status CheckExpected(absl::string_view served, absl::string_view expected, const v1::Trial& trial) {
  if (served == expected) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("the incumbent of ", WordsOf(trial.problem_text(), ClassOf(trial), trial.policy()), " is ",
                   served.empty() ? "none" : served, " by now, not ", expected.empty() ? "none" : expected));
}

absl::StatusOr<int64_t> WhereToGoBack(int64_t served, const std::vector<int64_t>& before, absl::string_view to,
                                      absl::string_view whose, ReadById read) {
  if (to.empty() && before.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(IncumbentName(served), " of ", whose, " is the first: there is none before it to go back to"));
  }
  for (const int64_t id : before) {
    if (to.empty() ? !ServesTheSame(id, served, read) : IncumbentName(id) == to) return id;
  }
  return NoWayBackTo(to, served, before, whose, read);
}

absl::Status NothingToRollBack(absl::string_view whose) {
  return absl::FailedPreconditionError(absl::StrCat(whose, " has no incumbent to roll back"));
}

absl::Status NoIncumbent(absl::string_view whose) {
  return absl::NotFoundError(absl::StrCat(whose, " has no incumbent"));
}

absl::Status NoReadableIncumbent(absl::string_view whose) {
  return absl::NotFoundError(absl::StrCat(whose, " has no incumbent that can be read"));
}

}  // namespace attune::store
