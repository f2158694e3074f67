#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "server/store/merged_runs.h"
#include "server/store/testing/fake_store_state.h"

namespace attune::store {

absl::Status FakeStore::RecordProfile(absl::string_view trial, const v1::Profile& profile, const JobWrite& write) {
  return Change(trial, write, [&](v1::Trial& stored) { *stored.mutable_profile() = profile; });
}

absl::Status FakeStore::RecordSanitizing(absl::string_view trial, const v1::Sanitizing& sanitizing,
                                         const JobWrite& write) {
  return Change(trial, write,
                [&](v1::Trial& stored) { *stored.mutable_sanitizing() = MergedRuns(stored.sanitizing(), sanitizing); });
}

absl::Status FakeStore::Change(absl::string_view trial, const JobWrite& write,
                               absl::FunctionRef<void(v1::Trial&)> change) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->append.ok()) return state_->append;
  return queue()
      .Once(write,
            [&]() -> absl::StatusOr<std::string> {
              if (state_->Find(trial) == nullptr) {
                return absl::NotFoundError(absl::StrCat("trial '", trial, "' does not exist"));
              }
              change(state_->reports[std::string(trial)]);
              return std::string(trial);
            })
      .status();
}

}  // namespace attune::store
