#include "server/verify/shared_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::verify {
namespace {

constexpr double kLargeBytes = 64 << 20;

}  // namespace

SharedInputs::SharedInputs(const Problem& problem) : large_(Bytes(problem) > kLargeBytes) {}

size_t SharedInputs::Add(std::string name, InputBuffers& buffers, const Tensors& inputs) {
  sets_.push_back({std::move(name), &buffers, &inputs, &inputs});
  return sets_.size() - 1;
}

absl::Status SharedInputs::Replace(size_t set, const Tensors& inputs) {
  sets_[set].now = &inputs;
  return verify::Restore(*sets_[set].buffers, inputs);
}

absl::Status SharedInputs::Restore(size_t set) { return Replace(set, *sets_[set].own); }

absl::StatusOr<std::string> SharedInputs::DamageTo(size_t set) const {
  const Set& looked_at = sets_[set];
  absl::StatusOr<std::string> damage = InputDamage(*looked_at.buffers, *looked_at.now);
  if (!damage.ok() || damage->empty()) return damage;
  return absl::StrCat(looked_at.name, ": ", *damage);
}

absl::StatusOr<std::string> SharedInputs::Damage(Look look) {
  known_intact_ = false;
  if (large_ && look == Look::kInTurn) return DamageTo(turn_++ % sets_.size());
  for (size_t set = 0; set < sets_.size(); ++set) {
    absl::StatusOr<std::string> damage = DamageTo(set);
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
