// What every job works with.
#ifndef ATTUNE_SERVER_JOBS_JOB_H_
#define ATTUNE_SERVER_JOBS_JOB_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attune/v1/service.pb.h"
#include "server/base/clock.h"
#include "server/base/proto_time.h"
#include "server/jobs/live_operation.h"
#include "server/space/family.h"
#include "server/space/space.h"
#include "server/store/store.h"
#include "server/supervisor/workers.h"
#include "server/trials/device_slot.h"
#include "server/trials/pace.h"
#include "server/trials/trial_claims.h"

namespace attune::jobs {

// The tuner's, for all jobs.
struct Workshop {
  store::Store* store = nullptr;
  supervisor::CompilePool* compiler = nullptr;
  std::vector<std::shared_ptr<const space::Family>> families;
  int compile_ahead = 1;
  size_t play_off_size = 6;
  std::function<void(const v1::Incumbent&)> promoted;  // never null
  Clock clock = SteadyNow;
  trials::TrialClaims* claims = nullptr;
};

// One job's.
struct JobContext {
  const Workshop& shop;
  trials::DeviceSlot& slot;
  LiveOperation& operation;
  trials::Priority priority = trials::Priority::kInteractive;
  std::string prefix;                        // of messages: which problem of a sweep this is
  const trials::SweepPace* sweep = nullptr;  // of the sweep that this problem belongs to
};

// For what asks now and then whether the job was stopped.
inline space::Stopped StoppedWith(const JobContext& context) {
  return [stop = context.operation.stop_token()] { return stop.stop_requested(); };
}

// Higher goes first; what a whole job waits for goes before its variants.
inline int CompilePriority(trials::Priority priority, bool awaited) {
  return (priority == trials::Priority::kInteractive ? 2 : 0) + (awaited ? 1 : 0);
}

// The progress of a problem that begins: nothing done yet, but by the sweep it may belong to.
inline void Restart(const JobContext& context, v1::OperationProgress& progress) {
  progress.Clear();
  if (context.sweep == nullptr) return;
  progress.set_problems_done(context.sweep->done());
  progress.set_problems_total(context.sweep->problems());
  if (const auto left = context.sweep->TimeLeft(context.shop.clock()); left.has_value()) {
    SetDuration(*left, progress.mutable_eta());
  }
}

inline void SetPhase(JobContext& context, v1::OperationProgress::Phase phase, const std::string& message) {
  context.operation.Update([&](v1::Operation& operation) {
    operation.mutable_progress()->set_phase(phase);
    operation.mutable_progress()->set_message(context.prefix + message);
  });
}

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_JOB_H_
