#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/verify/case.h"
#include "server/verify/loaded_candidate.h"
#include "server/verify/module_cache.h"
#include "server/verify/row_map.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

constexpr size_t kLoadedModules = 64;
constexpr int kMaxTimingSets = 8;
// Of one case. Reading back four cases of such takes longer than everything else in a trial.
constexpr double kLargeInputBytes = 64 << 20;
// What outputs and scratch hold before the two runs: NaN, and a number that is nowhere right. They differ, so that a
// run which leaves its outputs alone shows even if the other was right.
constexpr std::byte kPoisons[] = {std::byte{0xFF}, std::byte{0x5A}};

// What a candidate writes, and room on the host for both runs.
struct Outputs {
  GuardedBuffer o;
  std::optional<GuardedBuffer> lse;  // when the problem asks for it

  static absl::StatusOr<Outputs> Create(device::Device& device, const Problem& problem) {
    const size_t rows = QueryRows(problem);
    absl::StatusOr<GuardedBuffer> o =
        GuardedBuffer::Create(device, "O", rows * problem.head_dim * DTypeBytes(problem.dtype));
    if (!o.ok()) return o.status();
    Outputs outputs = {*std::move(o), std::nullopt};
    if (problem.lse) {
      absl::StatusOr<GuardedBuffer> lse = GuardedBuffer::Create(device, "LSE", rows * sizeof(float));
      if (!lse.ok()) return lse.status();
      outputs.lse = *std::move(lse);
    }
    return outputs;
  }

  device::Bindings BoundTo(const InputBuffers& inputs) const {
    device::Bindings bindings = inputs.bindings();
    bindings.o = o.view();
    if (lse) bindings.lse = lse->view();
    return bindings;
  }
  absl::Status Fill(std::byte value) {
    absl::Status status = o.Fill(value);
    if (lse) status.Update(lse->Fill(value));
    return status;
  }
  absl::Status FillZones() {
    absl::Status status = o.FillZones();
    if (lse) status.Update(lse->FillZones());
    return status;
  }
};

struct RunResult {
  GuardedBuffer::Snapshot o, lse;

  std::string Damage() const {
    if (std::string damage = o.Damage(); !damage.empty()) return absl::StrCat("O: ", damage);
    if (lse.bytes.empty()) return "";
    if (std::string damage = lse.Damage(); !damage.empty()) return absl::StrCat("LSE: ", damage);
    return "";
  }
};

// What is wrong with a candidate; OK when nothing is.
struct Finding {
  v1::Verdict verdict = v1::VERDICT_OK;
  std::string detail;

  bool ok() const { return verdict == v1::VERDICT_OK; }
};

template <typename T>
absl::Span<const T> As(absl::Span<const std::byte> bytes) {
  return absl::MakeConstSpan(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
}

bool SameBits(const GuardedBuffer::Snapshot& a, const GuardedBuffer::Snapshot& b) {
  return a.contents().size() == b.contents().size() &&
         (a.contents().empty() || std::memcmp(a.contents().data(), b.contents().data(), a.size) == 0);
}

bool CannotRunHere(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsResourceExhausted(status);
}

class Timed : public TimedCandidate {
 public:
  explicit Timed(LoadedCandidate candidate) : candidate_(std::move(candidate)) {}

  absl::Status Add(const device::Bindings& buffers) {
    absl::StatusOr<std::unique_ptr<device::Runnable>> runnable = candidate_.Bind(buffers);
    if (!runnable.ok()) return runnable.status();
    pointers_.push_back(runnable->get());
    owned_.push_back(*std::move(runnable));
    return absl::OkStatus();
  }
  absl::Span<device::Runnable* const> runnables() const override { return pointers_; }

 private:
  LoadedCandidate candidate_;  // outlives what is bound to it
  std::vector<std::unique_ptr<device::Runnable>> owned_;
  std::vector<device::Runnable*> pointers_;
};

class PreparedProblemImpl : public PreparedProblem {
 public:
  PreparedProblemImpl(device::Device& device, const Problem& problem, uint64_t seed, std::vector<Case> cases,
                      Outputs outputs)
      : device_(device),
        problem_(problem),
        seed_(seed),
        cases_(std::move(cases)),
        outputs_(std::move(outputs)),
        modules_(device, kLoadedModules) {}

  absl::StatusOr<worker::v1::TrialResponse> Check(const worker::v1::Candidate& candidate) override {
    const absl::Time start = absl::Now();
    worker::v1::TrialResponse response;
    absl::StatusOr<Finding> finding = CheckAllCases(candidate, *response.mutable_accuracy());
    if (!finding.ok()) {
      if (!CannotRunHere(finding.status())) return finding.status();
      finding = Finding{v1::VERDICT_INFEASIBLE, std::string(finding.status().message())};
    }
    response.set_verdict(finding->verdict);
    response.set_detail(finding->detail);
    response.set_check_ms(absl::ToDoubleMilliseconds(absl::Now() - start));
    return response;
  }

  absl::StatusOr<std::unique_ptr<TimedCandidate>> ForTiming(const worker::v1::Candidate& candidate) override {
    if (absl::Status status = MakeTimingSets(); !status.ok()) return status;
    absl::StatusOr<LoadedCandidate> loaded =
        LoadedCandidate::Create(device_, modules_, candidate.artifact(), candidate.recipe());
    if (!loaded.ok()) return loaded.status();
    auto timed = std::make_unique<Timed>(*std::move(loaded));
    if (absl::Status status = timed->Add(outputs_.BoundTo(cases_.front().buffers)); !status.ok()) return status;
    for (const TimingSet& set : timing_sets_) {
      if (absl::Status status = timed->Add(set.outputs.BoundTo(set.inputs)); !status.ok()) return status;
    }
    return timed;
  }

 private:
  // A further set to rotate through; the first is the first case's buffers.
  struct TimingSet {
    InputBuffers inputs;
    Outputs outputs;
  };

  absl::StatusOr<Finding> CheckAllCases(const worker::v1::Candidate& candidate, v1::Accuracy& accuracy) {
    absl::StatusOr<LoadedCandidate> loaded =
        LoadedCandidate::Create(device_, modules_, candidate.artifact(), candidate.recipe());
    if (!loaded.ok()) return loaded.status();
    Finding finding;
    for (const Case& checked : cases_) {
      absl::StatusOr<Finding> result = CheckCase(*loaded, checked, candidate.deterministic(), accuracy);
      if (!result.ok()) return result.status();
      finding = *std::move(result);
      if (!finding.ok()) {
        finding.detail = absl::StrCat("inputs '", Name(checked.distribution), "': ", finding.detail);
        break;
      }
    }
    // Once for all cases and also after a wrong result: a stray write may have landed in any of them. A kernel treats
    // all cases alike, so that of large inputs one case is looked at each time, in turn.
    size_t begin = 0;
    size_t end = cases_.size();
    if (finding.ok() && Bytes(problem_) > kLargeInputBytes) {
      begin = next_looked_at_++ % cases_.size();
      end = begin + 1;
    }
    for (size_t i = begin; i < end && finding.verdict != v1::VERDICT_OUT_OF_BOUNDS; ++i) {
      absl::StatusOr<std::string> damage = cases_[i].InputDamage();
      if (!damage.ok()) return damage.status();
      if (damage->empty()) continue;
      finding = {v1::VERDICT_OUT_OF_BOUNDS, absl::StrCat("inputs '", Name(cases_[i].distribution), "': ", *damage)};
    }
    if (finding.verdict == v1::VERDICT_OUT_OF_BOUNDS) {
      if (absl::Status status = Repair(); !status.ok()) return status;
    }
    return finding;
  }

  absl::StatusOr<Finding> CheckCase(LoadedCandidate& candidate, const Case& checked, bool deterministic,
                                    v1::Accuracy& accuracy) {
    absl::StatusOr<std::unique_ptr<device::Runnable>> runnable = candidate.Bind(outputs_.BoundTo(checked.buffers));
    if (!runnable.ok()) return runnable.status();
    accuracy.set_cases(accuracy.cases() + 1);
    for (int run = 0; run < 2; ++run) {
      if (absl::Status status = RunPoisoned(candidate, **runnable, kPoisons[run], results_[run]); !status.ok()) {
        return status;
      }
      absl::StatusOr<std::string> scratch_damage = candidate.ScratchDamage();
      if (!scratch_damage.ok()) return scratch_damage.status();
      const std::string damage = scratch_damage->empty() ? results_[run].Damage() : *scratch_damage;
      if (!damage.empty()) return Finding{v1::VERDICT_OUT_OF_BOUNDS, damage};
    }
    Finding finding = Compare(results_[0], checked, accuracy);
    if (!finding.ok()) return finding;
    if (SameBits(results_[0].o, results_[1].o) && SameBits(results_[0].lse, results_[1].lse)) return finding;
    if (deterministic) return Finding{v1::VERDICT_UNSTABLE, "a second run on the same inputs gave other bits"};
    return Compare(results_[1], checked, accuracy);
  }

  absl::Status RunPoisoned(LoadedCandidate& candidate, device::Runnable& runnable, std::byte poison,
                           RunResult& result) {
    absl::Status status = outputs_.Fill(poison);
    status.Update(candidate.PoisonScratch(poison));
    if (status.ok()) status = runnable.Run();
    if (status.ok()) status = outputs_.o.Download(result.o);
    if (status.ok() && outputs_.lse) status = outputs_.lse->Download(result.lse);
    return status;
  }

  Finding Compare(const RunResult& result, const Case& checked, v1::Accuracy& accuracy) const {
    const Comparison o =
        CompareOutput(problem_, As<uint16_t>(result.o.contents()), checked.exact.o, checked.plain_error);
    if (accuracy.cases() == 1 || o.max_abs_error > accuracy.max_abs_error()) {
      accuracy.set_max_abs_error(o.max_abs_error);
      accuracy.set_plain_max_abs_error(checked.plain_error);
    }
    if (!o.ok) return {v1::VERDICT_WRONG_RESULT, o.detail};
    if (!outputs_.lse) return {};
    const Comparison lse = CompareLse(As<float>(result.lse.contents()), checked.exact.lse);
    return lse.ok ? Finding{} : Finding{v1::VERDICT_WRONG_RESULT, lse.detail};
  }

  absl::Status Repair() {
    absl::Status status = outputs_.FillZones();
    for (Case& damaged : cases_) status.Update(damaged.Repair());
    return status;
  }

  // As many further sets as the L2 asks for and the memory allows; once.
  absl::Status MakeTimingSets() {
    if (timing_sets_made_) return absl::OkStatus();
    const double set_bytes = Bytes(problem_);
    const double l2_bytes = static_cast<double>(device_.info().l2_bytes());
    const double memory_bytes = static_cast<double>(device_.info().memory_bytes());
    for (int sets = 1; sets < kMaxTimingSets; ++sets) {
      const bool exceed_l2 = sets * set_bytes > 2 * l2_bytes;
      const bool exceed_memory = memory_bytes > 0 && sets * set_bytes > memory_bytes / 4;
      if (exceed_l2 || exceed_memory) break;
      absl::StatusOr<InputBuffers> inputs =
          UploadInputs(device_, MakeInputs(problem_, Distribution::kNormal, seed_ + sets));
      if (!inputs.ok()) return inputs.status();
      absl::StatusOr<Outputs> outputs = Outputs::Create(device_, problem_);
      if (!outputs.ok()) return outputs.status();
      timing_sets_.push_back({*std::move(inputs), *std::move(outputs)});
    }
    timing_sets_made_ = true;
    return absl::OkStatus();
  }

  device::Device& device_;
  Problem problem_;
  uint64_t seed_;
  std::vector<Case> cases_;
  Outputs outputs_;
  std::vector<TimingSet> timing_sets_;
  bool timing_sets_made_ = false;
  ModuleCache modules_;
  size_t next_looked_at_ = 0;  // case
  RunResult results_[2];
};

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedProblem>> PreparedProblem::Create(device::Device& device, const Problem& problem,
                                                                         const worker::v1::PrepareRequest& request) {
  absl::StatusOr<References> references = References::Create(device, problem, request);
  if (!references.ok()) return references.status();
  std::vector<Case> cases;
  for (Distribution distribution : Distributions()) {
    absl::StatusOr<Case> made = references->MakeCase(distribution, request.seed());
    if (!made.ok()) return made.status();
    cases.push_back(*std::move(made));
  }
  absl::StatusOr<Outputs> outputs = Outputs::Create(device, problem);
  if (!outputs.ok()) return outputs.status();
  return std::make_unique<PreparedProblemImpl>(device, problem, request.seed(), std::move(cases), *std::move(outputs));
}

}  // namespace attune::verify
