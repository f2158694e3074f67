#include "server/catalog/explain.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/attune/problem.h"
#include "server/base/device_profile.h"

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
  Explainer(const v1::Trial& trial, const v1::Device& device, double floor_us)
      : trial_(trial), device_(device), floor_us_(floor_us), us_(trial.timing().median_us()) {}

  Response Explain() {
    *response_.mutable_trial() = trial_;
    const absl::StatusOr<Problem> problem = FromProto(trial_.problem());
    if (problem.ok()) {
      response_.set_flops(Flops(*problem));
      response_.set_bytes(Bytes(*problem));
    }
    if (trial_.verdict() != v1::VERDICT_OK) {
      Add(1, Response::BOUND_NOT_OK,
          absl::StrCat("the verdict is ", Word(trial_.verdict()), trial_.detail().empty() ? "" : ": ", trial_.detail()),
          "");
      return Sorted();
    }
    if (us_ > 0) {
      response_.set_tflops(response_.flops() / us_ / 1e6);
      response_.set_gbs(response_.bytes() / us_ / 1e3);
    }
    Grid();
    Latency();
    TensorCores();
    Occupancy();
    Memory();
    Compute();
    return Sorted();
  }

 private:
  void Grid() {
    const v1::Geometry& geometry = trial_.geometry();
    const int64_t sms = geometry.sm_count() > 0 ? geometry.sm_count() : device_.compute_units();
    if (sms <= 0 || geometry.ctas() <= 0) return;
    if (geometry.ctas() < sms) {
      const double idle = 1 - static_cast<double>(geometry.ctas()) / static_cast<double>(sms);
      Add(idle, Response::BOUND_GRID,
          absl::StrFormat("%d CTA%s on %d SMs: %.0f %% of the chip idle", geometry.ctas(),
                          geometry.ctas() == 1 ? "" : "s", sms, idle * 100),
          GridAdvice(sms));
    } else if (geometry.waves() > 1) {
      const double rounds = std::ceil(geometry.waves());
      const double idle = 1 - geometry.waves() / rounds;
      if (idle < 0.2) return;
      Add(idle, Response::BOUND_GRID,
          absl::StrFormat("%d CTAs make %.2f waves: in the last one part of the chip idles, %.0f %% of the whole time",
                          geometry.ctas(), geometry.waves(), idle * 100),
          "choose a tile or KV_SPLITS that fills the last wave, or PERSISTENT CTAs");
    }
  }

  std::string GridAdvice(int64_t sms) const {
    const std::optional<int64_t> splits = Parameter(trial_, "KV_SPLITS");
    if (splits.has_value()) {
      const int64_t wanted =
          (sms + trial_.geometry().ctas() - 1) / trial_.geometry().ctas() * std::max<int64_t>(*splits, 1);
      return absl::StrCat("raise KV_SPLITS from ", *splits, " towards ", wanted);
    }
    const std::optional<int64_t> rows = Parameter(trial_, "BLOCK_M");
    if (rows.has_value()) return absl::StrCat("lower BLOCK_M from ", *rows, " so that there are more tiles");
    return "choose a family that splits the work further";
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
    Add(0.5, Response::BOUND_TENSOR_CORES_UNUSED,
        absl::StrCat("MMA is 0: the tensor cores are unused at ", Rate(response_.tflops())),
        "choose a variant with MMA above 0");
  }

  void Occupancy() {
    const v1::Geometry& geometry = trial_.geometry();
    if (geometry.occupancy() <= 0 || geometry.occupancy() >= 0.25) return;
    Add(0.25 - geometry.occupancy(), Response::BOUND_OCCUPANCY,
        absl::StrFormat(
            "%d resident CTA%s of %d threads per SM: occupancy %.0f %%, with %d registers per thread and %d "
            "bytes of shared memory per CTA",
            geometry.ctas_per_sm(), geometry.ctas_per_sm() == 1 ? "" : "s", geometry.threads_per_cta(),
            geometry.occupancy() * 100, trial_.resources().registers(), trial_.resources().shared_bytes()),
        "smaller tiles or fewer stages let more CTAs be resident");
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

// The floor that the trial's own job measured; 0 when that job kept none.
absl::StatusOr<double> FloorOf(const v1::Trial& trial, store::Store& store) {
  const absl::StatusOr<store::Job> job = store.queue().Get(trial.job());
  if (absl::IsNotFound(job.status()) || absl::IsDataLoss(job.status())) return 0;
  if (!job.ok()) return job.status();
  return job->operation.tune().floor_us();
}

}  // namespace

v1::ExplainResponse Explain(const v1::Trial& trial, const v1::Device& device, double floor_us) {
  return Explainer(trial, device, floor_us).Explain();
}

absl::StatusOr<v1::ExplainResponse> ExplainStored(absl::string_view trial, store::Store& store, const Host& host) {
  const absl::StatusOr<v1::Trial> stored = store.GetTrial(trial);
  if (!stored.ok()) return stored.status();
  const absl::StatusOr<double> floor_us = FloorOf(*stored, store);
  if (!floor_us.ok()) return floor_us.status();
  return Explain(*stored, DeviceOf(*stored, host), *floor_us);
}

}  // namespace attune::catalog
