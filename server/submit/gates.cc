#include "server/submit/gates.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attune::submit {
namespace {

constexpr int64_t kEnoughCtas = 4;      // an SM
constexpr double kLowOccupancy = 0.25;  // of the SM's warps

class Findings {
 public:
  void Fail(v1::GateFinding::Gate gate, std::string text) { Add(gate, true, std::move(text)); }
  void Warn(v1::GateFinding::Gate gate, std::string text) { Add(gate, false, std::move(text)); }
  std::vector<v1::GateFinding> Take() {
    std::stable_partition(findings_.begin(), findings_.end(), [](const auto& finding) { return finding.failed(); });
    return std::move(findings_);
  }

 private:
  void Add(v1::GateFinding::Gate gate, bool failed, std::string text) {
    v1::GateFinding& finding = findings_.emplace_back();
    finding.set_gate(gate);
    finding.set_failed(failed);
    finding.set_text(std::move(text));
  }

  std::vector<v1::GateFinding> findings_;
};

void LookAtGrid(const v1::Geometry& geometry, Findings& findings) {
  if (geometry.sm_count() == 0 || geometry.ctas() >= kEnoughCtas * geometry.sm_count()) return;
  findings.Warn(v1::GateFinding::GATE_CTAS,
                absl::StrCat(geometry.ctas(), " CTAs on ", geometry.sm_count(), " SMs; ", kEnoughCtas,
                             " an SM would be ", kEnoughCtas * geometry.sm_count(),
                             ". Split the keys over more CTAs, or take smaller tiles of queries"));
}

void LookAtResources(const v1::Trial& trial, const v1::Device& device, Findings& findings) {
  const v1::Resources& resources = trial.resources();
  const bool infeasible = trial.verdict() == v1::VERDICT_INFEASIBLE;
  if (resources.spill_bytes() > 0) {
    const std::string text =
        absl::StrCat("spills ", resources.spill_bytes(), " bytes a thread at ", resources.registers(),
                     " registers. Keep less of a tile in registers, or use more threads for it");
    infeasible ? findings.Fail(v1::GateFinding::GATE_SPILLS, text) : findings.Warn(v1::GateFinding::GATE_SPILLS, text);
  }
  if (device.shared_bytes_per_block() > 0 && resources.shared_bytes() > device.shared_bytes_per_block()) {
    findings.Fail(v1::GateFinding::GATE_SHARED_MEMORY,
                  absl::StrCat(resources.shared_bytes(), " bytes of shared memory a block; ", device.id(), " has ",
                               device.shared_bytes_per_block(), ". Take smaller tiles or fewer stages"));
  }
  const v1::Geometry& geometry = trial.geometry();
  if (device.warp_size() > 1 && geometry.occupancy() > 0 && geometry.occupancy() < kLowOccupancy) {
    findings.Warn(v1::GateFinding::GATE_OCCUPANCY,
                  absl::StrFormat("%.0f %% of an SM's warps are resident: %d CTAs of %d threads, with %d registers a "
                                  "thread and %d bytes of shared memory a CTA",
                                  100 * geometry.occupancy(), geometry.ctas_per_sm(), geometry.threads_per_cta(),
                                  resources.registers(), resources.shared_bytes()));
  }
}

}  // namespace

std::vector<v1::GateFinding> GatesOf(const v1::Trial& trial, const v1::Device& device, double speedup) {
  Findings findings;
  if (trial.verdict() == v1::VERDICT_TIMEOUT) findings.Fail(v1::GateFinding::GATE_TIME, trial.detail());
  if (speedup > 0 && 1 / speedup > 1 + kRegression) {
    findings.Fail(v1::GateFinding::GATE_REGRESSION, absl::StrFormat("%.1f %% slower than the base; allowed: %.0f %%",
                                                                    100 * (1 / speedup - 1), 100 * kRegression));
  }
  if (trial.has_geometry()) LookAtGrid(trial.geometry(), findings);
  LookAtResources(trial, device, findings);
  return findings.Take();
}

bool Reverts(const std::vector<v1::GateFinding>& gates) {
  return std::any_of(gates.begin(), gates.end(), [](const v1::GateFinding& gate) { return gate.failed(); });
}

}  // namespace attune::submit
