// --role=device: checks and times candidates on the one device that this process holds.
#ifndef ATTUNE_SERVER_WORKER_DEVICE_SESSION_H_
#define ATTUNE_SERVER_WORKER_DEVICE_SESSION_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/attune/problem.h"
#include "server/device/device.h"
#include "server/measure/measure.h"
#include "server/verify/verify.h"
#include "server/worker/device_timer.h"
#include "server/worker/session.h"

namespace attune::worker {

// The device is opened when a request first needs it and again after Release; the problem prepared last comes with it.
class DeviceSession : public Session {
 public:
  using OpenDevice = std::function<absl::StatusOr<std::unique_ptr<device::Device>>()>;
  // `look`: kOnHost has the host look at everything.
  DeviceSession(const attune::v1::Device& info, OpenDevice open,
                verify::PreparedProblem::Look look = verify::PreparedProblem::Look::kOnDevice)
      : info_(info), open_(std::move(open)), look_(look) {}

  worker::v1::Response Handle(const worker::v1::Request& request) override;

 private:
  // Handle's answer, but for how long the device has worked for it.
  worker::v1::Response Answered(const worker::v1::Request& request);
  absl::StatusOr<worker::v1::PrepareResponse> Prepare(const worker::v1::PrepareRequest& request);
  absl::StatusOr<worker::v1::TrialResponse> Trial(const worker::v1::TrialRequest& request);
  absl::StatusOr<worker::v1::PlayOffResponse> PlayOff(const worker::v1::PlayOffRequest& request);
  absl::StatusOr<worker::v1::FloorResponse> Floor(const worker::v1::FloorRequest& request);
  worker::v1::ReleaseResponse Release();

  absl::Status EnsureDevice();
  absl::Status EnsurePrepared();
  // One run, checked, and a quick look at its time, which `options` has afterwards: SLOW when that is far above the
  // leader's, OK when it is worth a whole check.
  absl::StatusOr<worker::v1::TrialResponse> Glance(const worker::v1::TrialRequest& request, measure::Options& options);
  // Adds the timing, or what timing has brought to light of the candidate. An error when the device failed.
  absl::Status SetTiming(const verify::TimedCandidate& timed, DeviceTimer& timer, const attune::v1::Timing& timing,
                         verify::PreparedProblem::Occasion occasion, worker::v1::TrialResponse& response);
  // Unavailable when contestants timed in turn have changed an input.
  absl::Status CheckTogether(size_t contestants);
  // Allocates the problem's memory and loads all code anew, where preparing it was quick.
  absl::Status Reload();
  // Each many more times, without timing.
  absl::StatusOr<worker::v1::PlayOffResponse> ManyRuns(const worker::v1::PlayOffRequest& request);
  // What a run of each takes in joules, without timing. OUT_OF_BOUNDS is who has damaged what others read.
  absl::StatusOr<worker::v1::PlayOffResponse> Energies(const worker::v1::PlayOffRequest& request);
  // Times those of the results that are OK as one cycle.
  absl::Status TimeCycle(const worker::v1::PlayOffRequest& request, std::vector<worker::v1::TrialResponse>& results);
  // Checks with fresh data; OK with nothing said when the request asks for no check.
  absl::StatusOr<std::vector<worker::v1::TrialResponse>> CheckAll(const worker::v1::PlayOffRequest& request);

  const attune::v1::Device info_;
  const OpenDevice open_;
  const verify::PreparedProblem::Look look_;
  std::unique_ptr<device::Device> device_;
  device::Inspector* inspector_ = nullptr;             // device_'s, once it is found to agree with the host
  std::unique_ptr<verify::PreparedProblem> prepared_;  // lives on device_
  Problem problem_;                                    // prepared_'s
  std::optional<worker::v1::PrepareRequest> request_;  // of the last Prepare that succeeded
  absl::Duration prepare_time_;                        // that it took
  absl::BitGen random_;
};

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_DEVICE_SESSION_H_
