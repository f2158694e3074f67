#include "server/verify/prepared/timing_sets.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/verify/footprint.h"

namespace attune::verify {
namespace {

// The case's own inputs among them.
constexpr int kMostSets = 8;

}  // namespace

absl::Status TimingSets::Make(device::Device& device, const Problem& problem, const CaseInputs& inputs,
                              Inspection* inspection, SharedInputs& shared) {
  const double set_bytes = Bytes(problem);
  const double l2_bytes = static_cast<double>(device.info().l2_bytes());
  const double memory_bytes = static_cast<double>(device.info().memory_bytes());
  sets_.reserve(kMostSets - 1);
  for (int sets = static_cast<int>(size()) + 1; sets < kMostSets; ++sets) {
    const bool exceed_l2 = sets * set_bytes > 2 * l2_bytes;
    const bool exceed_memory = memory_bytes > 0 && sets * set_bytes > memory_bytes / 4;
    if (exceed_l2 || exceed_memory) break;
    absl::StatusOr<InputBuffers> put = PutInputs(device, problem, inputs, inspection);
    if (!put.ok()) return put.status();
    absl::StatusOr<Outputs> outputs = Outputs::Create(device, problem);
    if (!outputs.ok()) return outputs.status();
    sets_.push_back({*std::move(put), *std::move(outputs)});
    shared.Add(absl::StrCat("input set ", sets + 1), sets_.back().inputs, inputs);
  }
  return absl::OkStatus();
}

}  // namespace attune::verify
