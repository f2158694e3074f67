#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/verify/case.h"
#include "server/verify/case_inputs.h"
#include "server/verify/footprint.h"
#include "server/verify/inspection.h"
#include "server/verify/loaded_candidate.h"
#include "server/verify/module_cache.h"
#include "server/verify/outputs.h"
#include "server/verify/prepared/bound_candidate.h"
#include "server/verify/prepared/many_runs.h"
#include "server/verify/prepared/poisoned_run.h"
#include "server/verify/prepared/right_poison.h"
#include "server/verify/prepared/shared_inputs.h"
#include "server/verify/prepared/shared_references.h"
#include "server/verify/prepared/timing_sets.h"
#include "server/verify/row_map.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

constexpr size_t kLoadedModules = 64;
// Of large inputs those of one trial in so many are replaced for the last run.
constexpr int kLargeReplacements = 4;

bool CannotRunHere(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsResourceExhausted(status);
}

// Whether the reference results of all cases, and a right output, leave half of the memory free.
bool HasRoomForReferences(const Problem& problem, const v1::Device& device) {
  const double o_elements = static_cast<double>(QueryRows(problem) * problem.head_dim);
  const double references = static_cast<double>(Distributions().size() + 1) * sizeof(float) * o_elements;
  const double right = static_cast<double>(DTypeBytes(problem.dtype)) * o_elements;
  return 2 * (FootprintOf(problem).device + references + right) <= static_cast<double>(device.memory_bytes());
}

// What a problem's preparation has found out. The rest of a prepared problem is device memory and code.
struct Known {
  Problem problem;
  std::unique_ptr<Inspection> inspection;  // null: the host looks at everything
  std::vector<Case> cases;
  Case fresh;  // the first case with some rows changed, for CheckTimed alone; has no buffers
  bool large;
  std::optional<RightOutput> right = {};  // of the first case, once it was needed
};

class PreparedProblemImpl : public PreparedProblem {
 public:
  // The cases' memory is on the device.
  PreparedProblemImpl(device::Device& device, Known known, Outputs outputs)
      : device_(device),
        problem_(known.problem),
        inspection_(std::move(known.inspection)),
        cases_(std::move(known.cases)),
        fresh_(std::move(known.fresh)),
        outputs_(std::move(outputs)),
        inputs_(known.large, inspection_.get()),
        references_(inspection_.get()),
        checked_modules_(device, kLoadedModules),
        timed_modules_(device, kLoadedModules),
        right_(device, inspection_.get(), std::move(known.right)) {
    for (Case& own : cases_) {
      inputs_.Add(absl::StrCat("inputs '", Name(own.distribution), "'"), own.buffers, own.inputs);
      references_.Add(own);
    }
    references_.Add(fresh_);
  }

  device::Device& device() const { return device_; }

  // Without device memory. All that can be done with this afterwards is to destroy it.
  Known Release() && {
    for (Case& own : cases_) FreeMemory(own);
    FreeMemory(fresh_);
    return {problem_,          std::move(inspection_), std::move(cases_),
            std::move(fresh_), inputs_.large(),        std::move(right_).Release()};
  }

  // Internal unless the inspector, if there is one, finds all inputs and references: what it misses later is then a
  // candidate's doing.
  absl::Status ExpectAll() {
    if (inspection_ == nullptr) return absl::OkStatus();
    Inspection::Expected expected;
    for (const Case& own : cases_) {
      Expect(own.buffers, own.inputs, *inspection_, expected);
      Expect(*own.reference, own.reference_digest, *inspection_, expected);
    }
    Expect(*fresh_.reference, fresh_.reference_digest, *inspection_, expected);
    const absl::StatusOr<bool> found = inspection_->Finds(expected);
    if (!found.ok() || *found) return found.status();
    return absl::InternalError("the device does not hold the inputs and reference results that were put there");
  }

  absl::StatusOr<worker::v1::TrialResponse> QuickCheck(
      const worker::v1::Candidate& candidate, absl::FunctionRef<absl::Status(const TimedCandidate&)> time) override {
    look_ = Look::kOnDevice;
    return Answered([&](v1::Accuracy& accuracy) { return CheckOneRun(candidate, time, accuracy); });
  }

  absl::StatusOr<worker::v1::TrialResponse> Check(const worker::v1::Candidate& candidate, Look look) override {
    look_ = look;
    return Answered([&](v1::Accuracy& accuracy) { return CheckUntilSure(candidate, accuracy); });
  }

  absl::StatusOr<Finding> CheckManyRuns(const worker::v1::Candidate& candidate, absl::Duration most) override {
    look_ = Look::kOnHost;
    absl::StatusOr<LoadedCandidate> loaded =
        LoadedCandidate::Create(device_, checked_modules_, candidate.artifact(), candidate.recipe());
    if (!loaded.ok()) return loaded.status();
    ManyRuns runs(device_, problem_, outputs_, results_, inspection_.get(), static_cast<int>(cases_.size()), most);
    return UntilSure([&](bool repeated) -> absl::StatusOr<Finding> {
      Finding finding;
      for (const Case& checked : cases_) {
        absl::StatusOr<Finding> result = runs.Of(*loaded, checked, candidate.deterministic());
        if (!result.ok()) return result.status();
        finding = *std::move(result);
        if (finding.ok()) continue;
        finding.detail = InCase(checked, finding.detail);
        break;
      }
      return WithInputs(std::move(finding), repeated);
    });
  }

  absl::StatusOr<std::unique_ptr<TimedCandidate>> ForTiming(const worker::v1::Candidate& candidate) override {
    absl::Status status = timing_sets_.Make(device_, problem_, cases_.front().inputs, inspection_.get(), inputs_);
    if (!status.ok()) return status;
    absl::StatusOr<LoadedCandidate> loaded =
        LoadedCandidate::Create(device_, timed_modules_, candidate.artifact(), candidate.recipe());
    if (!loaded.ok()) return loaded.status();
    auto timed = std::make_unique<BoundCandidate>(*std::move(loaded));
    if (status = timed->Add(outputs_.BoundTo(cases_.front().buffers)); !status.ok()) return status;
    for (const TimingSets::Set& set : timing_sets_) {
      if (status = timed->Add(set.outputs.BoundTo(set.inputs)); !status.ok()) return status;
    }
    return timed;
  }

  absl::StatusOr<Finding> CheckTimed(const TimedCandidate& timed, size_t sets,
                                     absl::FunctionRef<absl::Status()> run_again, Occasion occasion) override {
    look_ = occasion == Occasion::kPlayOff ? Look::kOnHost : Look::kOnDevice;
    return UntilSure([&](bool repeated) -> absl::StatusOr<Finding> {
      absl::StatusOr<Finding> finding = CheckLastRun(timed, sets, run_again, occasion, repeated);
      if (finding.ok() && !finding->ok()) finding->detail = absl::StrCat("while it was timed: ", finding->detail);
      return finding;
    });
  }

  absl::StatusOr<std::string> RepairInputs() override {
    absl::StatusOr<std::string> damage = inputs_.Damage(SharedInputs::Which::kAll, Look::kOnDevice);
    if (!damage.ok() || damage->empty()) return damage;
    if (absl::Status status = Repair(); !status.ok()) return status;
    return damage;
  }

 private:
  // What a check has found, as a worker answers it.
  static absl::StatusOr<worker::v1::TrialResponse> Answered(
      absl::FunctionRef<absl::StatusOr<Finding>(v1::Accuracy&)> check) {
    const absl::Duration start = SteadyNow();
    worker::v1::TrialResponse response;
    absl::StatusOr<Finding> finding = check(*response.mutable_accuracy());
    if (!finding.ok()) {
      if (!CannotRunHere(finding.status())) return finding.status();
      finding = Finding{v1::VERDICT_INFEASIBLE, std::string(finding.status().message())};
    }
    response.set_verdict(finding->verdict);
    response.set_detail(finding->detail);
    response.set_check_ms(absl::ToDoubleMilliseconds(SteadyNow() - start));
    return response;
  }

  // Runs `check` (called with false), and once more (with true) on repaired inputs when it found damage that an earlier
  // candidate may have left.
  absl::StatusOr<Finding> UntilSure(absl::FunctionRef<absl::StatusOr<Finding>(bool repeated)> check) {
    const bool sure = inputs_.known_intact();
    absl::StatusOr<Finding> finding = check(false);
    if (sure || !finding.ok() || finding->verdict != v1::VERDICT_OUT_OF_BOUNDS) return finding;
    return check(true);
  }

  absl::StatusOr<Finding> CheckOneRun(const worker::v1::Candidate& candidate,
                                      absl::FunctionRef<absl::Status(const TimedCandidate&)> time,
                                      v1::Accuracy& accuracy) {
    absl::StatusOr<LoadedCandidate> loaded =
        LoadedCandidate::Create(device_, checked_modules_, candidate.artifact(), candidate.recipe());
    if (!loaded.ok()) return loaded.status();
    BoundCandidate bound(*std::move(loaded));
    const Case& checked = cases_.front();
    if (absl::Status status = bound.Add(outputs_.BoundTo(checked.buffers)); !status.ok()) return status;
    return UntilSure([&](bool repeated) -> absl::StatusOr<Finding> {
      accuracy.Clear();
      accuracy.set_cases(1);
      absl::StatusOr<Finding> finding =
          LookAtRun(bound.candidate(), *bound.runnables().front(), checked, kPoisons[0], results_[0]);
      if (finding.ok() && finding->ok()) finding = CompareWith(problem_, results_[0], checked, accuracy);
      if (!finding.ok()) return finding;
      if (!finding->ok()) finding->detail = InCase(checked, finding->detail);
      if (finding->ok()) {
        bound.set_checked_run(last_run_);
        if (absl::Status status = time(bound); !status.ok()) return status;
      }
      return WithInputs(*std::move(finding), repeated, SharedInputs::Which::kFew);
    });
  }

  absl::StatusOr<Finding> CheckUntilSure(const worker::v1::Candidate& candidate, v1::Accuracy& accuracy) {
    absl::StatusOr<LoadedCandidate> loaded =
        LoadedCandidate::Create(device_, checked_modules_, candidate.artifact(), candidate.recipe());
    if (!loaded.ok()) return loaded.status();
    return UntilSure([&](bool repeated) {
      accuracy.Clear();
      return CheckAllCases(*loaded, candidate.deterministic(), repeated, accuracy);
    });
  }

  absl::StatusOr<Finding> CheckAllCases(LoadedCandidate& candidate, bool deterministic, bool repeated,
                                        v1::Accuracy& accuracy) {
    Finding finding;
    for (const Case& checked : cases_) {
      absl::StatusOr<Finding> result = CheckCase(candidate, checked, deterministic, accuracy);
      if (!result.ok()) return result.status();
      finding = *std::move(result);
      if (!finding.ok()) {
        finding.detail = InCase(checked, finding.detail);
        break;
      }
    }
    return WithInputs(std::move(finding), repeated);
  }

  // What was found in outputs and scratch, unless the inputs are damaged: then that, which is also repaired. Once for
  // all sets and also after a wrong result: a stray write may have landed in any of them, and a changed input makes
  // results wrong. `which`: of a right result that was not repeated.
  absl::StatusOr<Finding> WithInputs(Finding finding, bool repeated,
                                     SharedInputs::Which which = SharedInputs::Which::kInTurn) {
    if (finding.verdict != v1::VERDICT_OUT_OF_BOUNDS) {
      if (!finding.ok() || repeated) which = SharedInputs::Which::kAll;
      absl::StatusOr<std::string> damage = inputs_.Damage(which, look_);
      if (damage.ok() && damage->empty()) damage = references_.Damage(WhichReferences(which));
      if (!damage.ok()) return damage.status();
      if (!damage->empty()) finding = {v1::VERDICT_OUT_OF_BOUNDS, *std::move(damage)};
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
    absl::StatusOr<Finding> damage = LookAtRun(candidate, **runnable, checked, kPoisons[0], results_[0]);
    if (!damage.ok() || !damage->ok()) return damage;
    const std::optional<OutputDigests> first = HostHas(results_[0]);
    bool same = false;
    damage = LookAtRun(candidate, **runnable, checked, kPoisons[1], results_[1], first, &same);
    if (!damage.ok() || !damage->ok()) return damage;
    Finding finding = CompareWith(problem_, results_[0], checked, accuracy);
    if (!finding.ok() || same || results_[0].SameBits(results_[1])) return finding;
    finding = CompareWith(problem_, results_[1], checked, accuracy);
    if (!finding.ok()) finding.detail = absl::StrCat("a second run on the same inputs: ", finding.detail);
    if (!finding.ok() || !deterministic) return finding;
    return Finding{v1::VERDICT_UNSTABLE, "a second run on the same inputs gave other bits"};
  }

  // Runs once on poisoned outputs, which `result` then has, and says what has been written outside of them. Where they
  // are `known`, *same is set in place of `result`.
  absl::StatusOr<Finding> LookAtRun(LoadedCandidate& candidate, device::Runnable& runnable, const Case& checked,
                                    std::byte poison, OutputSnapshot& result,
                                    const std::optional<OutputDigests>& known = {}, bool* same = nullptr) {
    const absl::StatusOr<absl::Duration> ran = RunPoisoned(device_, candidate, outputs_, runnable, poison);
    if (!ran.ok()) return ran.status();
    last_run_ = *ran;
    const absl::StatusOr<bool> held = Hold(outputs_, known);
    if (!held.ok()) return held.status();
    if (*held) *same = true;
    absl::Status status = *held ? absl::OkStatus() : Observe(outputs_, checked, result);
    if (!status.ok()) return status;
    absl::StatusOr<std::string> damage = candidate.ScratchDamage(inspecting());
    if (!damage.ok()) return damage.status();
    if (damage->empty() && !*held) damage = result.Damage();
    return damage->empty() ? Finding() : Finding{v1::VERDICT_OUT_OF_BOUNDS, *std::move(damage)};
  }

  static std::string InCase(const Case& checked, absl::string_view detail) {
    return absl::StrCat("inputs '", Name(checked.distribution), "': ", detail);
  }

  // Null while the host looks.
  Inspection* inspecting() const { return look_ == Look::kOnDevice ? inspection_.get() : nullptr; }

  // What the inspector can tell again from outputs that the host looks at; nullopt where it is not asked, or has
  // looked.
  std::optional<OutputDigests> HostHas(const OutputSnapshot& result) const {
    if (inspection_ == nullptr || look_ == Look::kOnDevice) return std::nullopt;
    return OutputDigests(result, *inspection_);
  }

  absl::StatusOr<bool> Hold(const Outputs& outputs, const std::optional<OutputDigests>& known) {
    if (!known.has_value()) return false;
    return outputs.Hold(*known, *inspection_);
  }

  absl::Status Observe(const Outputs& outputs, const Case& expected, OutputSnapshot& result) {
    if (inspecting() == nullptr) return outputs.Download(result);
    return outputs.Observe(problem_, expected, *inspection_, random_, result);
  }

  // Behind a quick look at large inputs one of them: where the one that is needed is damaged, the host has compared
  // with its own copy.
  SharedReferences::Which WhichReferences(SharedInputs::Which inputs) const {
    const bool in_turn = inputs_.large() && inputs == SharedInputs::Which::kFew;
    return in_turn ? SharedReferences::Which::kInTurn : SharedReferences::Which::kAll;
  }

  // One set, at random, gets inputs that no run has seen, though most of their rows are as before, and keeps the
  // outputs that timing left there: neither finding its last results nor keeping them elsewhere helps a kernel, nor
  // does a look at a few elements of its inputs. The other sets keep their inputs, and their outputs are poisoned with
  // plausible values. A single set has both in turn.
  absl::StatusOr<Finding> CheckLastRun(const TimedCandidate& timed, size_t sets,
                                       absl::FunctionRef<absl::Status()> run_again, Occasion occasion, bool repeated) {
    const size_t replaced = absl::Uniform<size_t>(random_, 0, sets);
    const bool replaces = ReplacesInputs(occasion);
    if (replaces) {
      // Replacing them would hide what timing did to them.
      absl::StatusOr<std::string> damage = inputs_.DamageTo(InputsOf(replaced), look_);
      if (!damage.ok()) return damage.status();
      if (!damage->empty()) return WithInputs({v1::VERDICT_OUT_OF_BOUNDS, *std::move(damage)}, repeated);
      // Contestants timed in turn leave each other's outputs.
      absl::Status status = occasion == Occasion::kPlayOff ? run_again() : absl::OkStatus();
      if (status.ok()) status = inputs_.Replace(InputsOf(replaced), fresh_.inputs);
      if (!status.ok()) return status;
    }
    const auto expected = [&](size_t set) -> const Case& {
      return replaces && set == replaced ? fresh_ : cases_.front();
    };
    const auto poisoned = [&](size_t set) { return !replaces || set != replaced; };
    absl::StatusOr<Finding> finding = RunAndCompare(timed, sets, run_again, poisoned, expected);
    if (finding.ok() && finding->ok() && replaces && sets == 1) {
      finding = RunAndCompare(
          timed, sets, run_again, [](size_t) { return true; }, expected);
    }
    if (finding.ok()) finding = WithInputs(*std::move(finding), repeated);
    if (replaces && !absl::IsAborted(finding.status())) {
      if (absl::Status status = inputs_.Restore(InputsOf(replaced)); !status.ok()) return status;
    }
    return finding;
  }

  bool ReplacesInputs(Occasion occasion) {
    return !inputs_.large() || occasion == Occasion::kPlayOff || large_trials_++ % kLargeReplacements == 0;
  }

  // Poisons the outputs of the sets for which `poisoned` holds, runs, and compares those of all.
  absl::StatusOr<Finding> RunAndCompare(const TimedCandidate& timed, size_t sets,
                                        absl::FunctionRef<absl::Status()> run_again,
                                        absl::FunctionRef<bool(size_t set)> poisoned,
                                        absl::FunctionRef<const Case&(size_t set)> expected) {
    for (size_t set = 0; set < sets; ++set) {
      if (!poisoned(set)) continue;
      absl::Status status = right_.Plant(problem_, cases_.front().exact, random_, OutputsOf(set));
      if (!status.ok()) return status;
    }
    if (absl::Status status = run_again(); !status.ok()) return status;
    absl::StatusOr<std::string> damage = timed.ScratchDamage(inspecting());
    if (!damage.ok()) return damage.status();
    if (!damage->empty()) return Finding{v1::VERDICT_OUT_OF_BOUNDS, *std::move(damage)};
    Finding finding;
    std::optional<OutputDigests> looked_at;  // what is right of the first case
    for (size_t set = 0; set < sets && finding.ok(); ++set) {
      const bool is_first_case = &expected(set) == &cases_.front();
      const absl::StatusOr<bool> held = Hold(OutputsOf(set), is_first_case ? looked_at : std::nullopt);
      if (!held.ok()) return held.status();
      if (*held) continue;
      if (absl::Status status = Observe(OutputsOf(set), expected(set), results_[0]); !status.ok()) return status;
      v1::Accuracy unused;
      const std::string around = results_[0].Damage();
      finding = around.empty() ? CompareWith(problem_, results_[0], expected(set), unused)
                               : Finding{v1::VERDICT_OUT_OF_BOUNDS, around};
      if (!finding.ok()) {
        finding.detail = absl::StrCat("run on input set ", set + 1, " of ", sets,
                                      &expected(set) == &fresh_ ? ", on new inputs: " : ": ", finding.detail);
      } else if (is_first_case) {
        looked_at = HostHas(results_[0]);
      }
    }
    return finding;
  }

  Outputs& OutputsOf(size_t set) { return set == 0 ? outputs_ : timing_sets_[set - 1].outputs; }
  // A timing set's number among inputs_.
  size_t InputsOf(size_t set) const { return set == 0 ? 0 : cases_.size() + set - 1; }

  absl::Status Repair() {
    absl::Status status = inputs_.Repair();
    status.Update(outputs_.FillZones());
    for (TimingSets::Set& set : timing_sets_) status.Update(set.outputs.FillZones());
    status.Update(references_.Repair());
    right_.Repair();
    return status;
  }

  device::Device& device_;
  Problem problem_;
  std::unique_ptr<Inspection> inspection_;
  Look look_ = Look::kOnHost;  // of the call that is under way
  absl::Duration last_run_;    // that was poisoned before, by the device's events
  std::vector<Case> cases_;
  Case fresh_;
  Outputs outputs_;
  TimingSets timing_sets_;
  SharedInputs inputs_;  // the cases', then the timing sets'
  SharedReferences references_;
  // What a kernel keeps in its module's variables while it is checked is not there when it is timed.
  ModuleCache checked_modules_, timed_modules_;
  std::array<OutputSnapshot, 2> results_;
  RightPoison right_;  // of the first case
  absl::BitGen random_;
  int large_trials_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedProblem>> PreparedProblem::Create(device::Device& device, const Problem& problem,
                                                                         const worker::v1::PrepareRequest& request,
                                                                         device::Inspector* inspector,
                                                                         double large_bytes) {
  std::unique_ptr<Inspection> inspection;
  if (inspector != nullptr && HasRoomForReferences(problem, device.info())) {
    inspection = std::make_unique<Inspection>(*inspector);
  }
  absl::StatusOr<References> references = References::Create(device, problem, request, inspection.get());
  if (!references.ok()) return references.status();
  const auto plan = [&](Distribution distribution, Rows rows) {
    return PlanInputs(problem, distribution, request.seed(), rows, /*holds_all=*/inspection == nullptr);
  };
  const Distribution timed = Distributions().front();
  absl::StatusOr<Case> fresh = references->MakeCase(timed, plan(timed, Rows::kChanged));
  if (!fresh.ok()) return fresh.status();
  fresh->buffers = {};
  std::vector<Case> cases;
  for (Distribution distribution : Distributions()) {
    absl::StatusOr<Case> made = references->MakeCase(distribution, plan(distribution, Rows::kOwn));
    if (!made.ok()) return made.status();
    cases.push_back(*std::move(made));
  }
  absl::StatusOr<Outputs> outputs = Outputs::Create(device, problem);
  if (!outputs.ok()) return outputs.status();
  Known known = {problem, std::move(inspection), std::move(cases), *std::move(fresh), Bytes(problem) > large_bytes};
  return std::make_unique<PreparedProblemImpl>(device, std::move(known), *std::move(outputs));
}

absl::StatusOr<std::unique_ptr<PreparedProblem>> PreparedProblem::Reload(std::unique_ptr<PreparedProblem> old) {
  auto& prepared = static_cast<PreparedProblemImpl&>(*old);  // there is no other kind
  device::Device& device = prepared.device();
  Known known = std::move(prepared).Release();
  old.reset();
  absl::Status status;
  for (Case& own : known.cases) {
    if (status.ok()) status = PutAgain(device, known.problem, known.inspection.get(), own);
  }
  if (status.ok()) status = PutReference(device, known.inspection.get(), known.fresh);
  if (!status.ok()) return status;
  absl::StatusOr<Outputs> outputs = Outputs::Create(device, known.problem);
  if (!outputs.ok()) return outputs.status();
  auto reloaded = std::make_unique<PreparedProblemImpl>(device, std::move(known), *std::move(outputs));
  if (status = reloaded->ExpectAll(); !status.ok()) return status;
  return reloaded;
}

}  // namespace attune::verify
