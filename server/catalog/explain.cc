#include "server/catalog/explain.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "proto/attune/problem.h"
#include "server/base/device_profile.h"
#include "server/catalog/bound.h"

namespace attune::catalog {
namespace {

using Response = v1::ExplainResponse;

std::optional<int64_t> Parameter(const v1::Trial& trial, absl::string_view name) {
  for (const v1::ParameterValue& parameter : trial.variant().parameters()) {
    if (parameter.name() == name) return parameter.value();
  }
  return std::nullopt;
}

std::string Rate(double tflops) {
  return tflops >= 1 ? absl::StrFormat("%.3g TFLOP/s", tflops) : absl::StrFormat("%.3g GFLOP/s", tflops * 1000);
}

class Explainer {
 public:
  Explainer(const v1::Trial& trial, const v1::Device& device, double floor_us, const Moves& moves)
      : trial_(trial), device_(device), floor_us_(floor_us), us_(trial.timing().median_us()), moves_(moves) {}

  Response Explain() {
    *response_.mutable_trial() = trial_;
    const absl::StatusOr<Problem> problem = FromProto(trial_.problem());
    if (problem.ok()) {
      response_.set_flops(Flops(*problem));
      response_.set_bytes(Bytes(*problem));
    }
    Sanitizers();
    if (trial_.verdict() != v1::VERDICT_OK) {
      Add(4, Response::BOUND_NOT_OK,
          absl::StrCat("the verdict is ", Word(trial_.verdict()), trial_.detail().empty() ? "" : ": ", trial_.detail()),
          "");
      return Sorted();
    }
    if (us_ > 0) {
      response_.set_tflops(response_.flops() / us_ / 1e6);
      response_.set_gbs(response_.bytes() / us_ / 1e3);
    }
    Counters();
    Grid();
    Latency();
    TensorCores();
    Occupancy();
    Memory();
    Compute();
    return Sorted();
  }

 private:
  // What was measured goes before what is reckoned.
  void Counters() {
    const std::string bound = BoundOf(trial_.profile());
    if (!bound.empty()) Add(2, Response::BOUND_COUNTERS, absl::StrCat("by its counters: ", bound), "");
  }

  void Sanitizers() {
    for (const v1::SanitizerRun& run : trial_.sanitizing().runs()) {
      if (run.errors() == 0) continue;
      const std::string tool =
          absl::AsciiStrToLower(absl::StripPrefix(v1::SanitizerTool_Name(run.tool()), "SANITIZER_TOOL_"));
      Add(3, Response::BOUND_SANITIZER,
          absl::StrCat(tool, " reports ", run.errors(), run.errors() == 1 ? " error" : " errors",
                       run.findings().empty() ? "" : absl::StrCat(": ", run.findings(0))),
          "");
    }
  }

  void Grid() {
    const v1::Geometry& geometry = trial_.geometry();
    const int64_t sms = geometry.sm_count() > 0 ? geometry.sm_count() : device_.compute_units();
    if (sms <= 0 || geometry.ctas() <= 0) return;
    if (geometry.ctas() < sms) {
      const double idle = 1 - static_cast<double>(geometry.ctas()) / static_cast<double>(sms);
      AddWith(idle, Response::BOUND_GRID,
              absl::StrFormat("%d CTA%s on %d SMs: %.0f %% of the chip idle", geometry.ctas(),
                              geometry.ctas() == 1 ? "" : "s", sms, idle * 100),
              GridIdeas(sms), "choose a family that splits the work further");
    } else if (geometry.waves() > 1) {
      const double rounds = std::ceil(geometry.waves());
      const double idle = 1 - geometry.waves() / rounds;
      if (idle < 0.2) return;
      // What fills the last wave mostly costs more than it gains: only what was faster is advised.
      Add(idle, Response::BOUND_GRID,
          absl::StrFormat("%d CTAs make %.2f waves: in the last one part of the chip idles, %.0f %% of the whole time",
                          geometry.ctas(), geometry.waves(), idle * 100),
          moves_.Proven({{.parameter = "PERSISTENT", .direction = Direction::kRaise},
                         {.parameter = "KV_SPLITS", .direction = Direction::kRaise},
                         {.parameter = "BLOCK_M", .direction = Direction::kLower}}));
    }
  }

  std::vector<Idea> GridIdeas(int64_t sms) const {
    const int64_t splits = std::max<int64_t>(Parameter(trial_, "KV_SPLITS").value_or(1), 1);
    const int64_t wanted = (sms + trial_.geometry().ctas() - 1) / trial_.geometry().ctas() * splits;
    return {{.parameter = "KV_SPLITS", .direction = Direction::kRaise, .towards = wanted},
            {.parameter = "BLOCK_M", .direction = Direction::kLower}};
  }

  void Latency() {
    if (floor_us_ <= 0 || us_ <= 0) return;
    const double share = floor_us_ * std::max(1, trial_.recipe().launches_size()) / us_;
    if (share < 0.5) return;
    Add(std::min(share, 1.0), Response::BOUND_LATENCY,
        absl::StrFormat("%.4g us with %d launches, where an empty launch takes %.4g us: near the launch floor", us_,
                        std::max(1, trial_.recipe().launches_size()), floor_us_),
        trial_.recipe().launches_size() > 1 ? "fewer launches, or batch more work into one"
                                            : "batch more work into one launch");
  }

  void TensorCores() {
    if (device_.backend() != v1::BACKEND_CUDA || Parameter(trial_, "MMA") != 0) return;
    AddWith(0.5, Response::BOUND_TENSOR_CORES_UNUSED,
            absl::StrCat("MMA is 0: the tensor cores are unused at ", Rate(response_.tflops())),
            {{.parameter = "MMA", .direction = Direction::kRaise}}, "");
  }

  void Occupancy() {
    const v1::Geometry& geometry = trial_.geometry();
    if (geometry.occupancy() <= 0 || geometry.occupancy() >= 0.25) return;
    // Few threads with many registers are often what is fastest: only what was faster is advised.
    Add(0.25 - geometry.occupancy(), Response::BOUND_OCCUPANCY,
        absl::StrFormat(
            "%d resident CTA%s of %d threads per SM: occupancy %.0f %%, with %d registers per thread and %d "
            "bytes of shared memory per CTA",
            geometry.ctas_per_sm(), geometry.ctas_per_sm() == 1 ? "" : "s", geometry.threads_per_cta(),
            geometry.occupancy() * 100, trial_.resources().registers(), trial_.resources().shared_bytes()),
        moves_.Proven(OccupancyIdeas()));
  }

  // Smaller tiles and fewer stages take less of an SM.
  static std::vector<Idea> OccupancyIdeas() {
    std::vector<Idea> ideas;
    for (const char* parameter : {"BLOCK_M", "BLOCK_N", "K_STAGES", "V_STAGES", "STAGES"}) {
      ideas.push_back({.parameter = parameter, .direction = Direction::kLower});
    }
    return ideas;
  }

  void Memory() {
    if (us_ <= 0) return;
    if (device_.memory_bandwidth_gbs() <= 0) {
      Add(0, Response::BOUND_MEMORY,
          absl::StrFormat("%.4g GB/s at least are moved; the memory bandwidth of %s is not known", response_.gbs(),
                          device_.id()),
          "");
      return;
    }
    const double share = response_.gbs() / static_cast<double>(device_.memory_bandwidth_gbs());
    Add(share >= 0.6 ? share : 0, Response::BOUND_MEMORY,
        absl::StrFormat("%.4g GB/s at least are moved, %.0f %% of the %d GB/s there are", response_.gbs(), share * 100,
                        device_.memory_bandwidth_gbs()),
        share >= 0.6 ? "near the memory's roof: only moving less helps" : "");
  }

  void Compute() {
    if (us_ <= 0) return;
    const std::optional<double> flops = TensorFlopsPerClock(device_.compute_capability());
    if (!flops.has_value() || device_.sm_clock_mhz() <= 0 || device_.compute_units() <= 0) {
      Add(0, Response::BOUND_COMPUTE,
          absl::StrCat(Rate(response_.tflops()), "; the compute roof of ", device_.id(), " is not known"), "");
      return;
    }
    const double roof =
        *flops * static_cast<double>(device_.compute_units()) * static_cast<double>(device_.sm_clock_mhz()) / 1e6;
    const double share = response_.tflops() / roof;
    Add(share >= 0.6 ? share : 0, Response::BOUND_COMPUTE,
        absl::StrFormat("%s, %.0f %% of the %.0f TFLOP/s that the tensor cores could do on paper",
                        Rate(response_.tflops()), share * 100, roof),
        share >= 0.6 ? "near the compute roof: only doing less helps" : "");
  }

  // With the ideas' advice, and what speaks against them; `otherwise` where the family has none of their parameters.
  void AddWith(double weight, Response::Bound bound, std::string text, const std::vector<Idea>& ideas,
               const std::string& otherwise) {
    const bool any = std::any_of(ideas.begin(), ideas.end(),
                                 [&](const Idea& idea) { return Parameter(trial_, idea.parameter).has_value(); });
    std::string advice = any ? moves_.Advice(ideas) : otherwise;
    const std::string in_vain = any ? moves_.TriedInVain(ideas) : "";
    if (!in_vain.empty()) absl::StrAppend(&text, "; ", in_vain);
    Add(weight, bound, std::move(text), std::move(advice));
  }

  void Add(double weight, Response::Bound bound, std::string text, std::string advice) {
    Response::Finding finding;
    finding.set_bound(bound);
    finding.set_text(std::move(text));
    finding.set_advice(std::move(advice));
    findings_.emplace_back(weight, std::move(finding));
  }

  Response Sorted() {
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [weight, finding] : findings_) *response_.add_findings() = std::move(finding);
    return std::move(response_);
  }

  const v1::Trial& trial_;
  const v1::Device& device_;
  const double floor_us_;
  const double us_;
  const Moves& moves_;
  Response response_;
  std::vector<std::pair<double, Response::Finding>> findings_;
};

// The device a trial ran on, or as much of it as the trial itself carries when it is not on this host.
v1::Device DeviceOf(const v1::Trial& trial, const Host& host) {
  if (const v1::Device* here = DeviceFor(trial, host); here != nullptr) return *here;
  v1::Device device;
  device.set_id(trial.device_id());
  device.set_compute_units(trial.geometry().sm_count());
  return device;
}

// The trial's family, while its sources are what they were; null otherwise.
std::shared_ptr<const space::Family> FamilyOf(const v1::Trial& trial, const Host& host) {
  for (const std::shared_ptr<const space::Family>& family : host.families.Now()) {
    const bool same = family->source_hash == trial.dependencies().source_hash();
    if (same && family->name() == trial.variant().family()) return family;
  }
  return nullptr;
}

// The floor that the trial's own job measured; 0 when that job kept none.
absl::StatusOr<double> FloorOf(const v1::Trial& trial, store::Store& store) {
  const absl::StatusOr<store::Job> job = store.queue().Get(trial.job());
  if (absl::IsNotFound(job.status()) || absl::IsDataLoss(job.status())) return 0;
  if (!job.ok()) return job.status();
  return job->operation.tune().floor_us();
}

}  // namespace

v1::ExplainResponse Explain(const v1::Trial& trial, const v1::Device& device, double floor_us, const Moves& moves) {
  return Explainer(trial, device, floor_us, moves).Explain();
}

absl::StatusOr<v1::ExplainResponse> ExplainStored(absl::string_view trial, store::Store& store, const Host& host) {
  const absl::StatusOr<v1::Trial> stored = store.GetTrial(trial);
  if (!stored.ok()) return stored.status();
  const absl::StatusOr<double> floor_us = FloorOf(*stored, store);
  if (!floor_us.ok()) return floor_us.status();
  absl::StatusOr<std::vector<v1::Trial>> others =
      store.KnownTrials(stored->problem_text(), InstanceOf(*stored), stored->policy(), stored->dependencies());
  if (!others.ok()) return others.status();
  std::erase_if(*others, [&](const v1::Trial& other) {
    return other.dependencies().source_hash() != stored->dependencies().source_hash();
  });
  const v1::Device device = DeviceOf(*stored, host);
  const Moves moves(*stored, FamilyOf(*stored, host), device, *others);
  return Explain(*stored, device, *floor_us, moves);
}

}  // namespace attune::catalog
