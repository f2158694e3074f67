#include "server/trials/store_wait.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/progress_words.h"
#include "server/base/log.h"
#include "server/base/pause.h"

namespace attune::trials {
namespace {

constexpr absl::Duration kLongestPause = absl::Seconds(2);

}  // namespace

bool IsOutage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) || absl::IsFailedPrecondition(status) ||
         absl::IsPermissionDenied(status);  // a file system that became read-only
}

bool IsReadOutage(const absl::Status& status) { return absl::IsUnavailable(status); }

StoreWait::StoreWait(std::string job, std::stop_token stop, Progress& progress, Outage outage)
    : job_(std::move(job)), stop_(std::move(stop)), progress_(progress), outage_(outage) {}

StoreWait::~StoreWait() {
  if (said_.empty()) return;
  progress_.Change([this](v1::OperationProgress& progress) {
    if (progress.message() == said_) progress.set_message(before_);
  });
}

bool StoreWait::Again(const absl::Status& failed) {
  if (store::IsStale(failed))
    LogWarning("a write of a stale lease was refused", {{"job", job_}, {"error", failed.message()}});
  if (!outage_(failed) || stop_.stop_requested()) return false;
  if (!std::exchange(waiting_, true)) {
    LogWarning("a job waits for the store", {{"job", job_}, {"error", failed.message()}});
    progress_.Change([&](v1::OperationProgress& progress) {
      if (absl::StartsWith(progress.message(), kWaitingForStore)) return;  // another write of the job says so already
      before_ = progress.message();
      said_ = absl::StrCat(kWaitingForStore, failed.message());
      progress.set_message(said_);
    });
  }
  const absl::Duration pause = std::exchange(pause_, std::min(2 * pause_, kLongestPause));
  return Pause(stop_, pause);
}

}  // namespace attune::trials
