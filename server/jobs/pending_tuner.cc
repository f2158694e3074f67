#include "server/jobs/pending_tuner.h"

#include <utility>

#include "server/base/reason.h"

namespace attune::jobs {

template <typename Call>
auto PendingTuner::Ask(const Call& call) -> decltype(call(std::declval<Tuner&>())) {
  if (Tuner* const tuner = tuner_; tuner != nullptr) return call(*tuner);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!meanwhile_.ok()) return meanwhile_;
  absl::Status probing =
      absl::UnavailableError("the daemon has just started and is still probing its host; try again in a moment");
  SetRetryDelay(absl::Seconds(1), probing);
  return probing;
}

void PendingTuner::SayMeanwhile(absl::Status unavailable) {
  const std::lock_guard<std::mutex> lock(mutex_);
  meanwhile_ = std::move(unavailable);
}

absl::Status PendingTuner::Resume() {
  return Ask([](Tuner& tuner) { return tuner.Resume(); });
}

absl::StatusOr<v1::Operation> PendingTuner::Tune(const v1::TuneRequest& request, const Asker& asker) {
  return Ask([&](Tuner& tuner) { return tuner.Tune(request, asker); });
}

absl::StatusOr<v1::Operation> PendingTuner::Sweep(const v1::SweepRequest& request, const Asker& asker) {
  return Ask([&](Tuner& tuner) { return tuner.Sweep(request, asker); });
}

absl::StatusOr<v1::Operation> PendingTuner::Evaluate(const v1::EvaluateVariantRequest& request, const Asker& asker) {
  return Ask([&](Tuner& tuner) { return tuner.Evaluate(request, asker); });
}

absl::StatusOr<v1::Operation> PendingTuner::Submit(const v1::SubmitRequest& request, const Asker& asker) {
  return Ask([&](Tuner& tuner) { return tuner.Submit(request, asker); });
}
absl::StatusOr<v1::Operation> PendingTuner::Profile(const v1::ProfileRequest& request, const Asker& asker) {
  return Ask([&](Tuner& tuner) { return tuner.Profile(request, asker); });
}
absl::StatusOr<v1::Operation> PendingTuner::Sanitize(const v1::SanitizeRequest& request, const Asker& asker) {
  return Ask([&](Tuner& tuner) { return tuner.Sanitize(request, asker); });
}

absl::StatusOr<v1::Operation> PendingTuner::GetOperation(absl::string_view name) {
  return Ask([name](Tuner& tuner) { return tuner.GetOperation(name); });
}

absl::StatusOr<v1::Operation> PendingTuner::Cancel(absl::string_view name) {
  return Ask([name](Tuner& tuner) { return tuner.Cancel(name); });
}

bool PendingTuner::IsIdle(absl::string_view device_id) {
  Tuner* const tuner = tuner_;
  return tuner == nullptr || tuner->IsIdle(device_id);
}

absl::StatusOr<std::function<void()>> PendingTuner::Watch(absl::string_view name, Watcher watcher) {
  return Ask([name, &watcher](Tuner& tuner) { return tuner.Watch(name, std::move(watcher)); });
}

void PendingTuner::Drain(absl::Duration grace) {
  if (Tuner* const tuner = tuner_; tuner != nullptr) tuner->Drain(grace);
}

}  // namespace attune::jobs
