#include "server/verify/prepared/shared_references.h"

namespace attune::verify {

absl::StatusOr<std::string> SharedReferences::Damage(Which which) {
  if (inspection_ == nullptr) return std::string();
  Inspection::Expected expected;
  const size_t turn = turn_ % cases_.size();
  for (size_t i = 0; i < cases_.size(); ++i) {
    if (which == Which::kInTurn && i != turn) continue;
    Expect(*cases_[i]->reference, cases_[i]->reference_digest, *inspection_, expected);
  }
  if (which == Which::kInTurn) ++turn_;
  const absl::StatusOr<bool> intact = inspection_->Finds(expected);
  if (!intact.ok()) return intact.status();
  return *intact ? "" : "wrote to reference results, which it was not given";
}

absl::Status SharedReferences::Repair() {
  if (inspection_ == nullptr) return absl::OkStatus();
  absl::Status status;
  for (Case* of : cases_) {
    status.Update(of->reference->Upload(AsBytes(of->exact.o)));
    status.Update(of->reference->FillZones());
  }
  return status;
}

}  // namespace attune::verify
