#include "server/worker/device_session.h"

#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/attune/problem.h"
#include "server/base/clock.h"
#include "server/measure/energy.h"
#include "server/measure/measure.h"
#include "server/measure/quick_look.h"
#include "server/verify/inspection.h"
#include "server/worker/device_load.h"
#include "server/worker/device_timer.h"
#include "server/worker/time_floor.h"

namespace attune::worker {
namespace {

using worker::v1::TrialResponse;

// With this many samples an interval still so wide says that the times do not settle; with fewer, that there was no
// time to find out.
constexpr int kEnoughSamples = 20;
constexpr double kUnstableWidth = 0.25;

// A cycle of a play-off loads code and allocates memory anew when the problem took less to prepare.
constexpr absl::Duration kQuickPrepare = absl::Milliseconds(150);

// How long many runs take of who would be served, and of all together that are tied with it.
constexpr absl::Duration kManyRunsTime = absl::Milliseconds(100);

double MillisecondsSince(absl::Duration start) { return absl::ToDoubleMilliseconds(SteadyNow() - start); }

bool CannotRunHere(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsResourceExhausted(status);
}

void SetVerdict(TrialResponse& response, attune::v1::Verdict verdict, absl::string_view detail) {
  response.set_verdict(verdict);
  response.set_detail(std::string(detail));
}

// A CPU runs its kernels on the cores that compile, serve and do everything else: times that spread there say nothing
// of the variant.
bool SharesItsCores(const attune::v1::Device& device) { return device.warp_size() == 1; }

// Empty, or why the timing is UNSTABLE. Contention is another process's fault.
std::string Unsettled(const attune::v1::Device& device, const attune::v1::Timing& timing) {
  if (timing.settled() || timing.contended() || SharesItsCores(device) || timing.samples() < kEnoughSamples) return "";
  const double width = timing.median_us() > 0 ? (timing.high_us() - timing.low_us()) / timing.median_us() : 0;
  if (width <= kUnstableWidth) return "";
  return absl::StrFormat("its times do not settle: %.3g to %.3g us around %.3g us after %d samples", timing.low_us(),
                         timing.high_us(), timing.median_us(), timing.samples());
}

template <typename T>
worker::v1::Response Answer(absl::StatusOr<T> result, T* (worker::v1::Response::*field)()) {
  if (!result.ok()) return ErrorResponse(result.status());
  worker::v1::Response response;
  *(response.*field)() = *std::move(result);
  return response;
}

}  // namespace

worker::v1::Response DeviceSession::Handle(const worker::v1::Request& request) {
  const device::Device* const before = device_.get();
  const absl::Duration worked = before != nullptr ? before->Worked() : absl::ZeroDuration();
  worker::v1::Response response = Answered(request);
  if (device_ == nullptr) return response;
  const double device_ms =
      absl::ToDoubleMilliseconds(device_->Worked() - (device_.get() == before ? worked : absl::ZeroDuration()));
  if (response.has_prepare()) response.mutable_prepare()->set_device_ms(device_ms);
  if (response.has_trial()) response.mutable_trial()->set_device_ms(device_ms);
  if (response.has_play_off()) response.mutable_play_off()->set_device_ms(device_ms);
  return response;
}

worker::v1::Response DeviceSession::Answered(const worker::v1::Request& request) {
  using worker::v1::Request;
  using worker::v1::Response;
  switch (request.kind_case()) {
    case Request::kDescribe: {
      Response response;
      *response.mutable_describe()->add_devices() = info_;
      return response;
    }
    case Request::kPrepare:
      return Answer(Prepare(request.prepare()), &Response::mutable_prepare);
    case Request::kTrial:
      return Answer(Trial(request.trial()), &Response::mutable_trial);
    case Request::kPlayOff:
      return Answer(PlayOff(request.play_off()), &Response::mutable_play_off);
    case Request::kFloor:
      return Answer(Floor(request.floor()), &Response::mutable_floor);
    case Request::kRelease:
      return Answer(absl::StatusOr<worker::v1::ReleaseResponse>(Release()), &Response::mutable_release);
    default:
      return NotServed(request, "device");
  }
}

absl::StatusOr<worker::v1::PrepareResponse> DeviceSession::Prepare(const worker::v1::PrepareRequest& request) {
  const absl::Duration start = SteadyNow();
  // The old problem's memory goes before the new one's is taken.
  prepared_.reset();
  request_.reset();
  absl::StatusOr<Problem> problem = FromProto(request.problem());
  if (!problem.ok()) return problem.status();
  if (absl::Status status = EnsureDevice(); !status.ok()) return status;
  const absl::Duration opened = SteadyNow();
  absl::StatusOr<std::unique_ptr<verify::PreparedProblem>> prepared =
      verify::PreparedProblem::Create(*device_, *problem, request, inspector_);
  if (!prepared.ok()) return prepared.status();
  prepared_ = *std::move(prepared);
  request_ = request;
  problem_ = *problem;
  prepare_time_ = SteadyNow() - opened;
  worker::v1::PrepareResponse response;
  response.set_prepare_ms(MillisecondsSince(start));
  return response;
}

absl::StatusOr<TrialResponse> DeviceSession::Trial(const worker::v1::TrialRequest& request) {
  if (absl::Status status = EnsurePrepared(); !status.ok()) return status;
  measure::Options options;
  absl::StatusOr<TrialResponse> response = TrialResponse();
  response->set_verdict(attune::v1::VERDICT_OK);
  const bool races = request.leader_us() > 0 && !request.check_all() && !SharesItsCores(info_);
  if (races && !request.time_only()) response = Glance(request, options);
  if (!response.ok() || response->verdict() != attune::v1::VERDICT_OK) return response;
  if (!request.time_only()) {
    const double glance_ms = response->check_ms() + response->time_ms();
    response = prepared_->Check(request.candidate(), verify::PreparedProblem::Look::kOnDevice);
    if (response.ok()) response->set_check_ms(glance_ms + response->check_ms());
  }
  if (!response.ok() || response->verdict() != attune::v1::VERDICT_OK || request.check_only()) return response;

  const absl::Duration start = SteadyNow();
  absl::StatusOr<std::unique_ptr<verify::TimedCandidate>> timed = prepared_->ForTiming(request.candidate());
  if (!timed.ok()) {
    if (!CannotRunHere(timed.status())) return timed.status();
    SetVerdict(*response, attune::v1::VERDICT_INFEASIBLE, timed.status().message());
    return response;
  }
  DeviceTimer timer(*device_, (*timed)->runnables(), request.policy());
  absl::StatusOr<attune::v1::Timing> timing = measure::Measure(timer, request.policy(), options, request.leader_us());
  if (!timing.ok()) return timing.status();
  absl::Status checked = SetTiming(**timed, timer, *timing, verify::PreparedProblem::Occasion::kTrial, *response);
  if (!checked.ok()) return checked;
  response->set_time_ms(MillisecondsSince(start));
  return response;
}

absl::StatusOr<TrialResponse> DeviceSession::Glance(const worker::v1::TrialRequest& request,
                                                    measure::Options& options) {
  const measure::Leader leader = {request.leader_us(), request.leader_sm_clock_mhz()};
  measure::QuickTime quick;
  double time_ms = 0;
  absl::StatusOr<TrialResponse> response =
      prepared_->QuickCheck(request.candidate(), [&](const verify::TimedCandidate& ran) -> absl::Status {
        const absl::Duration start = SteadyNow();
        DeviceTimer timer(*device_, ran.runnables(), request.policy());
        options.likely_us = absl::ToDoubleMicroseconds(ran.checked_run());
        absl::StatusOr<measure::QuickTime> looked = measure::QuickLook(timer, request.policy(), options, leader);
        time_ms += MillisecondsSince(start);
        if (!looked.ok()) return looked.status();
        quick = *std::move(looked);
        if (quick.given_up.has_value()) quick.given_up->set_input_sets(static_cast<int>(timer.sets()));
        return absl::OkStatus();
      });
  if (!response.ok() || response->verdict() != attune::v1::VERDICT_OK) return response;
  response->set_check_ms(response->check_ms() - time_ms);
  response->set_time_ms(time_ms);
  options.likely_us = quick.us;
  if (!quick.given_up.has_value()) return response;
  SetVerdict(
      *response, attune::v1::VERDICT_SLOW,
      absl::StrFormat("takes %.2f times as long as what it raced against; one of %d input distributions was checked",
                      quick.given_up->median_us() / leader.us, verify::Distributions().size()));
  *response->mutable_timing() = *std::move(quick.given_up);
  return response;
}

absl::Status DeviceSession::SetTiming(const verify::TimedCandidate& timed, DeviceTimer& timer,
                                      const attune::v1::Timing& timing, verify::PreparedProblem::Occasion occasion,
                                      TrialResponse& response) {
  absl::StatusOr<verify::Finding> finding = prepared_->CheckTimed(
      timed, timer.sets_to_check(), [&timer] { return timer.RunAgain(); }, occasion);
  if (!finding.ok()) return finding.status();
  if (!finding->ok()) {
    SetVerdict(response, finding->verdict, finding->detail);
    return absl::OkStatus();
  }
  *response.mutable_timing() = timing;
  response.mutable_timing()->set_input_sets(static_cast<int>(timer.sets()));
  std::string why = BelowFloor(timing.median_us(), problem_, info_, timer.policy(), timer.sets());
  if (why.empty()) why = Unsettled(info_, timing);
  if (!why.empty()) SetVerdict(response, attune::v1::VERDICT_UNSTABLE, why);
  return absl::OkStatus();
}

absl::StatusOr<worker::v1::PlayOffResponse> DeviceSession::PlayOff(const worker::v1::PlayOffRequest& request) {
  if (absl::Status status = EnsurePrepared(); !status.ok()) return status;
  if (request.many_runs()) return ManyRuns(request);
  if (request.energy()) return Energies(request);
  if (request.reload()) {
    if (absl::Status status = Reload(); !status.ok()) return status;
  }
  absl::StatusOr<std::vector<TrialResponse>> results = CheckAll(request);
  if (!results.ok()) return results.status();
  if (absl::Status status = TimeCycle(request, *results); !status.ok()) return status;
  worker::v1::PlayOffResponse response;
  for (TrialResponse& result : *results) response.add_results()->Swap(&result);
  return response;
}

absl::Status DeviceSession::Reload() {
  if (prepare_time_ > kQuickPrepare) return absl::OkStatus();
  // Where it fails, nothing is prepared, and the next request prepares from the start.
  absl::StatusOr<std::unique_ptr<verify::PreparedProblem>> reloaded =
      verify::PreparedProblem::Reload(std::move(prepared_));
  if (!reloaded.ok()) return reloaded.status();
  prepared_ = *std::move(reloaded);
  return absl::OkStatus();
}

absl::Status DeviceSession::TimeCycle(const worker::v1::PlayOffRequest& request, std::vector<TrialResponse>& results) {
  const absl::Duration start = SteadyNow();
  std::vector<std::unique_ptr<verify::TimedCandidate>> timed;
  std::vector<std::unique_ptr<DeviceTimer>> timers;
  std::vector<measure::Timer*> contestants;
  std::vector<TrialResponse*> contestant_results;
  for (int i = 0; i < request.candidates_size(); ++i) {
    TrialResponse& result = results[i];
    if (result.verdict() != attune::v1::VERDICT_OK) continue;
    absl::StatusOr<std::unique_ptr<verify::TimedCandidate>> candidate = prepared_->ForTiming(request.candidates(i));
    if (!candidate.ok()) {
      if (!CannotRunHere(candidate.status())) return candidate.status();
      SetVerdict(result, attune::v1::VERDICT_INFEASIBLE, candidate.status().message());
      continue;
    }
    timed.push_back(*std::move(candidate));
    timers.push_back(std::make_unique<DeviceTimer>(*device_, timed.back()->runnables(), request.policy()));
    contestants.push_back(timers.back().get());
    contestant_results.push_back(&result);
  }
  if (contestants.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<measure::RoundTimes>> times = measure::PlayCycle(
      contestants, request.policy(), measure::Options(), request.rounds(), absl::Uniform<uint64_t>(random_));
  if (!times.ok()) return times.status();
  if (absl::Status status = CheckTogether(contestants.size()); !status.ok()) return status;
  // The first cycle is the thorough one.
  const auto occasion =
      request.reload() ? verify::PreparedProblem::Occasion::kTrial : verify::PreparedProblem::Occasion::kPlayOff;
  for (size_t i = 0; i < contestants.size(); ++i) {
    TrialResponse& result = *contestant_results[i];
    absl::Status status = SetTiming(*timed[i], *timers[i], (*times)[i].timing, occasion, result);
    if (!status.ok()) return status;
    result.set_time_ms(MillisecondsSince(start));
    if (result.has_timing()) *result.mutable_rounds_us() = {(*times)[i].us.begin(), (*times)[i].us.end()};
  }
  return absl::OkStatus();
}

absl::StatusOr<worker::v1::PlayOffResponse> DeviceSession::ManyRuns(const worker::v1::PlayOffRequest& request) {
  worker::v1::PlayOffResponse response;
  for (const worker::v1::Candidate& candidate : request.candidates()) {
    TrialResponse& result = *response.add_results();
    // The first is who would be served; the others are tied with it.
    const bool is_first = response.results_size() == 1;
    const absl::Duration most = is_first ? kManyRunsTime : kManyRunsTime / (request.candidates_size() - 1);
    const absl::StatusOr<verify::Finding> finding = prepared_->CheckManyRuns(candidate, most);
    if (finding.ok()) {
      SetVerdict(result, finding->verdict, finding->detail);
    } else if (CannotRunHere(finding.status())) {
      SetVerdict(result, attune::v1::VERDICT_INFEASIBLE, finding.status().message());
    } else {
      return finding.status();
    }
  }
  return response;
}

absl::StatusOr<worker::v1::PlayOffResponse> DeviceSession::Energies(const worker::v1::PlayOffRequest& request) {
  worker::v1::PlayOffResponse response;
  for (const worker::v1::Candidate& candidate : request.candidates()) {
    TrialResponse& result = *response.add_results();
    result.set_verdict(attune::v1::VERDICT_OK);
    absl::StatusOr<std::unique_ptr<verify::TimedCandidate>> timed = prepared_->ForTiming(candidate);
    if (!timed.ok()) {
      if (!CannotRunHere(timed.status())) return timed.status();
      SetVerdict(result, attune::v1::VERDICT_INFEASIBLE, timed.status().message());
      continue;
    }
    DeviceLoad load(*device_, (*timed)->runnables(), request.policy());
    absl::StatusOr<attune::v1::Energy> energy = measure::MeasureEnergy(load, measure::EnergyOptions());
    // The device's own faults are errors; what its counter lacks is no fault of anybody's.
    if (!energy.ok() && !absl::IsFailedPrecondition(energy.status())) return energy.status();
    // What it has done to what others read is found now, and not blamed on them.
    const absl::StatusOr<std::string> damage = prepared_->RepairInputs();
    if (!damage.ok()) return damage.status();
    if (!damage->empty()) {
      SetVerdict(result, attune::v1::VERDICT_OUT_OF_BOUNDS, *damage);
    } else if (energy.ok()) {
      *result.mutable_energy() = *std::move(energy);
    } else {
      result.set_detail(std::string(energy.status().message()));
    }
  }
  return response;
}

// Timed in turn, contestants share the inputs: damage is found now, and who did it when each is played off alone.
absl::Status DeviceSession::CheckTogether(size_t contestants) {
  if (contestants < 2) return absl::OkStatus();
  absl::StatusOr<std::string> damage = prepared_->RepairInputs();
  if (!damage.ok() || damage->empty()) return damage.status();
  return absl::UnavailableError(
      absl::StrCat("one of ", contestants, " contestants that were timed in turn changed what they share: ", *damage));
}

absl::StatusOr<std::vector<TrialResponse>> DeviceSession::CheckAll(const worker::v1::PlayOffRequest& request) {
  std::vector<TrialResponse> results(request.candidates_size());
  if (request.fresh_seed() == 0) {
    for (TrialResponse& result : results) result.set_verdict(attune::v1::VERDICT_OK);
    return results;
  }
  // Prepared already for a play-off that is held again, or that has no trials before it.
  if (request_->seed() != request.fresh_seed()) {
    worker::v1::PrepareRequest fresh = *request_;
    fresh.set_seed(request.fresh_seed());
    if (absl::Status status = Prepare(fresh).status(); !status.ok()) return status;
  }
  for (int i = 0; i < request.candidates_size(); ++i) {
    absl::StatusOr<TrialResponse> checked =
        prepared_->Check(request.candidates(i), verify::PreparedProblem::Look::kOnHost);
    if (!checked.ok()) return checked.status();
    results[i] = *std::move(checked);
  }
  return results;
}

absl::StatusOr<worker::v1::FloorResponse> DeviceSession::Floor(const worker::v1::FloorRequest& request) {
  if (absl::Status status = EnsureDevice(); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<device::Module>> module = device_->Load(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(request.artifact().data()), request.artifact().size()));
  if (!module.ok()) return module.status();
  attune::v1::LaunchRecipe recipe;
  attune::v1::KernelLaunch* launch = recipe.add_launches();
  launch->set_entry(request.entry());
  for (attune::v1::Dim3* size : {launch->mutable_grid(), launch->mutable_block()}) {
    size->set_x(1);
    size->set_y(1);
    size->set_z(1);
  }
  absl::StatusOr<std::unique_ptr<device::Runnable>> runnable = device_->Bind(**module, recipe, {});
  if (!runnable.ok()) return runnable.status();
  device::Runnable* const runnables[] = {runnable->get()};
  DeviceTimer timer(*device_, runnables, attune::v1::POLICY_HOT);
  absl::StatusOr<attune::v1::Timing> timing = measure::Measure(timer, attune::v1::POLICY_HOT, measure::Options(), 0);
  if (!timing.ok()) return timing.status();
  worker::v1::FloorResponse response;
  *response.mutable_timing() = *std::move(timing);
  return response;
}

worker::v1::ReleaseResponse DeviceSession::Release() {
  prepared_.reset();
  inspector_ = nullptr;
  device_.reset();
  return {};
}

absl::Status DeviceSession::EnsureDevice() {
  if (device_ != nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<device::Device>> device = open_();
  if (!device.ok()) return device.status();
  device_ = *std::move(device);
  if (device_->inspector() == nullptr || look_ == verify::PreparedProblem::Look::kOnHost) return absl::OkStatus();
  const absl::Status agrees = verify::CheckInspector(*device_);
  if (absl::IsAborted(agrees)) return agrees;
  if (agrees.ok()) inspector_ = device_->inspector();
  if (!agrees.ok()) std::cerr << "attune-worker: the host compares: " << agrees.message() << std::endl;
  return absl::OkStatus();
}

absl::Status DeviceSession::EnsurePrepared() {
  if (prepared_ != nullptr) return absl::OkStatus();
  if (!request_.has_value()) return absl::FailedPreconditionError("no problem has been prepared");
  return Prepare(worker::v1::PrepareRequest(*request_)).status();
}

}  // namespace attune::worker
