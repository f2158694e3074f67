// A tuner to come: what the service is given while the host is still being probed, or a shared store is away, so that
// look-ups are answered meanwhile.
#ifndef ATTUNE_SERVER_JOBS_PENDING_TUNER_H_
#define ATTUNE_SERVER_JOBS_PENDING_TUNER_H_

#include <atomic>
#include <mutex>
#include <utility>

#include "server/jobs/tuner.h"

namespace attune::jobs {

// Unavailable, with a delay after which clients try again, until Arrive; from then on each call is the real tuner's.
class PendingTuner final : public Tuner {
 public:
  // What it waits for; unless told otherwise, for the host's probe.
  void SayMeanwhile(absl::Status unavailable);
  // `tuner` is resumed, and outlives every later call.
  void Arrive(Tuner* tuner) { tuner_ = tuner; }

  using Tuner::Evaluate;
  using Tuner::Sweep;
  using Tuner::Tune;

  absl::Status Resume() override;
  absl::StatusOr<v1::Operation> Tune(const v1::TuneRequest& request, const Asker& asker) override;
  absl::StatusOr<v1::Operation> Sweep(const v1::SweepRequest& request, const Asker& asker) override;
  absl::StatusOr<v1::Operation> Evaluate(const v1::EvaluateVariantRequest& request, const Asker& asker) override;
  absl::StatusOr<v1::Operation> Submit(const v1::SubmitRequest& request, const Asker& asker) override;
  absl::StatusOr<v1::Operation> Profile(const v1::ProfileRequest& request, const Asker& asker) override;
  absl::StatusOr<v1::Operation> Sanitize(const v1::SanitizeRequest& request, const Asker& asker) override;
  absl::StatusOr<v1::Operation> GetOperation(absl::string_view name) override;
  absl::StatusOr<v1::Operation> Cancel(absl::string_view name) override;
  bool IsIdle(absl::string_view device_id) override;
  absl::StatusOr<std::function<void()>> Watch(absl::string_view name, Watcher watcher) override;
  void Drain(absl::Duration grace) override;

 private:
  template <typename Call>
  auto Ask(const Call& call) -> decltype(call(std::declval<Tuner&>()));

  std::atomic<Tuner*> tuner_ = nullptr;
  std::mutex mutex_;
  absl::Status meanwhile_;  // OK: the host is being probed; guarded by mutex_
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_PENDING_TUNER_H_
