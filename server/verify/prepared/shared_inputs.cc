#include "server/verify/prepared/shared_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::verify {

size_t SharedInputs::Add(std::string name, InputBuffers& buffers, const CaseInputs& inputs) {
  sets_.push_back({std::move(name), &buffers, &inputs, &inputs});
  return sets_.size() - 1;
}

absl::Status SharedInputs::Replace(size_t set, const CaseInputs& inputs) {
  sets_[set].now = &inputs;
  return verify::Restore(*sets_[set].buffers, inputs, inspection_);
}

absl::Status SharedInputs::Restore(size_t set) { return Replace(set, *sets_[set].own); }

absl::StatusOr<bool> SharedInputs::SeenIntact(size_t first, size_t count) const {
  if (inspection_ == nullptr) return false;
  Inspection::Expected expected;
  for (size_t set = first; set < first + count; ++set) {
    Expect(*sets_[set].buffers, *sets_[set].now, *inspection_, expected);
  }
  return inspection_->Finds(expected);
}

absl::StatusOr<std::string> SharedInputs::HostFindsDamageTo(size_t set) const {
  const Set& looked_at = sets_[set];
  absl::StatusOr<std::string> damage = InputDamage(*looked_at.buffers, *looked_at.now);
  if (!damage.ok() || damage->empty()) return damage;
  return absl::StrCat(looked_at.name, ": ", *damage);
}

absl::StatusOr<std::string> SharedInputs::DamageTo(size_t set, PreparedProblem::Look look) const {
  if (look == PreparedProblem::Look::kOnDevice) {
    const absl::StatusOr<bool> intact = SeenIntact(set, 1);
    if (!intact.ok()) return intact.status();
    if (*intact) return std::string();
  }
  return HostFindsDamageTo(set);
}

absl::StatusOr<std::string> SharedInputs::Damage(Which which, PreparedProblem::Look look) {
  known_intact_ = false;
  if (large_ && which == Which::kFew) {
    absl::StatusOr<std::string> damage = DamageTo(0, look);
    if (!damage.ok() || !damage->empty() || sets_.size() == 1) return damage;
    return DamageTo(1 + turn_++ % (sets_.size() - 1), look);
  }
  const absl::StatusOr<bool> intact = SeenIntact(0, sets_.size());
  if (!intact.ok()) return intact.status();
  if (*intact && look == PreparedProblem::Look::kOnDevice) {
    known_intact_ = true;
    return std::string();
  }
  const bool in_turn = *intact ? which != Which::kAll : inspection_ == nullptr && large_ && which == Which::kInTurn;
  if (in_turn) return HostFindsDamageTo(turn_++ % sets_.size());
  for (size_t set = 0; set < sets_.size(); ++set) {
    absl::StatusOr<std::string> damage = DamageTo(set, look);
    if (!damage.ok() || !damage->empty()) return damage;
  }
  known_intact_ = true;
  return std::string();
}

absl::Status SharedInputs::Repair() {
  absl::Status status;
  for (size_t set = 0; set < sets_.size(); ++set) status.Update(Restore(set));
  known_intact_ = status.ok();
  return status;
}

}  // namespace attune::verify
