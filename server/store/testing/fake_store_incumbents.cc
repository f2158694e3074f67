// Of the store in memory: what is served, what was before, and the ways between.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/checks.h"
#include "server/store/testing/fake_store_state.h"
#include "server/store/testing/listing.h"

namespace attune::store {
namespace {

using fake::FitsText;
using fake::StoredIncumbent;
using fake::StoredTrial;

bool IsServed(const v1::Incumbent& incumbent, absl::string_view problem_text, absl::string_view device_class,
              v1::Policy policy) {
  return incumbent.problem_text() == problem_text && incumbent.device_class() == device_class &&
         incumbent.policy() == policy;
}

std::string NameOf(const StoredIncumbent& stored) { return absl::StrCat("incumbents/", stored.id); }

}  // namespace

StoredIncumbent* FakeStore::State::Served(absl::string_view problem_text, absl::string_view device_class,
                                          v1::Policy policy) {
  for (StoredIncumbent& stored : incumbents) {
    if (stored.served && IsServed(stored.incumbent, problem_text, device_class, policy)) return &stored;
  }
  return nullptr;
}

StoredIncumbent* FakeStore::State::Named(absl::string_view name) {
  for (StoredIncumbent& stored : incumbents) {
    if (NameOf(stored) == name) return &stored;
  }
  return nullptr;
}

absl::StatusOr<std::string> FakeStore::State::MakeServed(const v1::Incumbent& incumbent,
                                                         absl::string_view expected_previous) {
  const StoredTrial* stored = Find(incumbent.trial().name());
  if (stored == nullptr) return absl::NotFoundError("the incumbent's trial is not stored");
  const v1::Trial& trial = stored->trial;
  if (absl::Status status = CheckIncumbent(incumbent, trial); !status.ok()) return status;
  StoredIncumbent* before = Served(trial.problem_text(), ClassOf(trial), trial.policy());
  const std::string previous = before == nullptr ? "" : NameOf(*before);
  if (previous != expected_previous) {
    return absl::AbortedError(absl::StrCat("the incumbent is '", previous, "' by now, not '", expected_previous, "'"));
  }
  if (before != nullptr) before->served = false;
  StoredIncumbent made;
  made.id = static_cast<int64_t>(incumbents.size()) + 1;
  made.incumbent = incumbent;
  v1::Incumbent& whole = made.incumbent;
  whole.set_name(NameOf(made));
  whole.clear_problem();
  if (trial.has_problem()) *whole.mutable_problem() = trial.problem();
  whole.set_problem_text(trial.problem_text());
  whole.set_device_id(trial.device_id());
  whole.set_device_class(ClassOf(trial));
  whole.set_policy(trial.policy());
  *whole.mutable_trial() = trial;
  if (!whole.has_promote_time()) *whole.mutable_promote_time() = fake::Now();
  whole.set_previous(previous);
  whole.set_rolled_back(false);
  incumbents.push_back(std::move(made));
  return NameOf(incumbents.back());
}

absl::StatusOr<v1::Incumbent> FakeStore::Promote(const v1::Incumbent& incumbent, absl::string_view expected_previous,
                                                 const JobWrite& write) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const absl::StatusOr<std::string> name =
      queue().Once(write, [&] { return state_->MakeServed(incumbent, expected_previous); });
  if (!name.ok()) return name.status();
  return state_->Named(*name)->incumbent;
}

absl::StatusOr<v1::Incumbent> FakeStore::RollBack(absl::string_view problem_text, absl::string_view device_class,
                                                  v1::Policy policy, absl::string_view why, absl::string_view to) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  StoredIncumbent* const served = state_->Served(problem_text, device_class, policy);
  if (served == nullptr) return absl::FailedPreconditionError("there is no incumbent to roll back");
  std::vector<StoredIncumbent*> taken_out = {served};
  std::vector<std::string> before;
  StoredIncumbent* at = nullptr;
  const auto other = [&](const StoredIncumbent& one) {
    return one.incumbent.trial().variant().text() != served->incumbent.trial().variant().text() ||
           (served->incumbent.pinned() && !one.incumbent.pinned());
  };
  for (StoredIncumbent* one = state_->Named(served->incumbent.previous()); one != nullptr;
       one = state_->Named(one->incumbent.previous())) {
    before.push_back(NameOf(*one));
    if (at == nullptr && (to.empty() ? other(*one) : before.back() == to)) at = one;
    if (at == nullptr) taken_out.push_back(one);
  }
  if (to.empty() && before.empty()) return absl::FailedPreconditionError("there is none before the first");
  if (at == nullptr && to.empty()) {
    return NoOtherBefore(NameOf(*served), before, WordsOf(problem_text, device_class, policy));
  }
  if (at == nullptr) {
    const StoredIncumbent* const named = state_->Named(to);
    return NoWayBack(to, NameOf(*served), before, named == nullptr ? std::nullopt : std::optional(named->incumbent),
                     WordsOf(problem_text, device_class, policy));
  }
  for (StoredIncumbent* stored : taken_out) {
    stored->served = false;
    stored->incumbent.set_rolled_back(true);
    stored->incumbent.set_why(absl::StrCat(stored->incumbent.why(), "; rolled back", why.empty() ? "" : ": ", why));
  }
  at->served = true;
  return at->incumbent;
}

absl::StatusOr<v1::Incumbent> FakeStore::Unpin(absl::string_view problem_text, absl::string_view device_class,
                                               v1::Policy policy) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  StoredIncumbent* const served = state_->Served(problem_text, device_class, policy);
  if (served == nullptr) return absl::NotFoundError("no incumbent");
  served->incumbent.set_pinned(false);
  return served->incumbent;
}

absl::StatusOr<v1::Incumbent> FakeStore::GetIncumbent(absl::string_view problem_text, absl::string_view device_class,
                                                      v1::Policy policy) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->read.ok()) return state_->read;
  const StoredIncumbent* const served = state_->Served(problem_text, device_class, policy);
  if (served == nullptr) return absl::NotFoundError("no incumbent");
  return served->incumbent;
}

absl::StatusOr<Page<v1::Incumbent>> FakeStore::ListIncumbents(const IncumbentFilter& filter, int page_size,
                                                              absl::string_view page_token) {
  std::vector<Row<v1::Incumbent>> rows;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    for (auto it = state_->incumbents.rbegin(); it != state_->incumbents.rend(); ++it) {
      const v1::Incumbent& incumbent = it->incumbent;
      if ((it->served || filter.history) && FitsText(filter.problem_text, incumbent.problem_text()) &&
          FitsText(filter.device_class, incumbent.device_class()) &&
          FitsText(filter.device_id, incumbent.device_id()) &&
          filter.policy.value_or(incumbent.policy()) == incumbent.policy()) {
        rows.push_back({{it->id}, incumbent});
      }
    }
  }
  const std::string listing =
      absl::StrCat("incumbents ", filter.problem_text, " ", filter.device_class, " ", filter.device_id, " ",
                   static_cast<int>(filter.policy.value_or(v1::POLICY_UNSPECIFIED)), filter.history ? " all" : "");
  return Cut(std::move(rows), listing, page_size, page_token, IsOlder);
}

absl::StatusOr<std::vector<v1::Incumbent>> FakeStore::IncumbentsOf(const std::vector<std::string>& problem_texts) {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (!state_->read.ok()) return state_->read;
  }
  return Store::IncumbentsOf(problem_texts);
}

}  // namespace attune::store
