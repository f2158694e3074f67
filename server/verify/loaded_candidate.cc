#include "server/verify/loaded_candidate.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::verify {

absl::StatusOr<LoadedCandidate> LoadedCandidate::Create(device::Device& device, ModuleCache& modules,
                                                        absl::string_view artifact, const v1::LaunchRecipe& recipe) {
  absl::StatusOr<std::shared_ptr<device::Module>> module = modules.Get(artifact);
  if (!module.ok()) return module.status();
  LoadedCandidate candidate(device, *std::move(module), recipe);
  for (const v1::ScratchBuffer& scratch : recipe.scratch()) {
    if (scratch.bytes() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("recipe: scratch '", scratch.name(), "' has ", scratch.bytes(), " bytes; allowed are 0 and up"));
    }
    absl::StatusOr<GuardedBuffer> buffer =
        GuardedBuffer::Create(device, absl::StrCat("scratch ", scratch.name()), static_cast<size_t>(scratch.bytes()));
    if (!buffer.ok()) {
      return absl::Status(buffer.status().code(), absl::StrCat("scratch '", scratch.name(), "' of ", scratch.bytes(),
                                                               " bytes: ", buffer.status().message()));
    }
    if (scratch.zero_before_first_run()) {
      if (absl::Status status = buffer->Fill(std::byte{0}); !status.ok()) return status;
    }
    candidate.scratch_.push_back(*std::move(buffer));
  }
  return candidate;
}

absl::StatusOr<std::unique_ptr<device::Runnable>> LoadedCandidate::Bind(device::Bindings buffers) {
  buffers.scratch.clear();
  for (const GuardedBuffer& buffer : scratch_) buffers.scratch.push_back(buffer.view());
  return device_->Bind(*module_, recipe_, buffers);
}

absl::Status LoadedCandidate::PoisonScratch(std::byte value) {
  for (size_t i = 0; i < scratch_.size(); ++i) {
    if (recipe_.scratch(static_cast<int>(i)).zero_before_first_run()) continue;
    if (absl::Status status = scratch_[i].Fill(value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> LoadedCandidate::ScratchDamage(Inspection* inspection) const {
  if (inspection != nullptr) {
    absl::StatusOr<bool> intact = ScratchIsIntact(*inspection);
    if (!intact.ok()) return intact.status();
    if (*intact) return std::string();
  }
  for (size_t i = 0; i < scratch_.size(); ++i) {
    const GuardedBuffer& buffer = scratch_[i];
    absl::StatusOr<std::string> damage = buffer.Damage();
    if (!damage.ok()) return damage.status();
    if (!damage->empty()) return absl::StrCat(buffer.name(), ": ", *damage);
    if (!recipe_.scratch(static_cast<int>(i)).zero_before_first_run()) continue;
    const absl::StatusOr<bool> zero = buffer.Holds(std::vector<std::byte>(buffer.size()));
    if (!zero.ok()) return zero.status();
    if (!*zero) return absl::StrCat(buffer.name(), ": not left zero, as it was given");
  }
  return std::string();
}

absl::StatusOr<bool> LoadedCandidate::ScratchIsIntact(Inspection& inspection) const {
  Inspection::Expected expected;
  for (size_t i = 0; i < scratch_.size(); ++i) {
    if (scratch_[i].size() == 0) continue;
    const auto [before, contents, after] = scratch_[i].ranges();
    for (const device::BufferView& zone : {before, after}) {
      expected.emplace_back(zone, inspection.DigestOf(GuardedBuffer::kZoneByte, zone.size));
    }
    if (!recipe_.scratch(static_cast<int>(i)).zero_before_first_run()) continue;
    expected.emplace_back(contents, inspection.DigestOf(std::byte{0}, contents.size));
  }
  return inspection.Finds(expected);
}

}  // namespace attune::verify
