#include "server/store/queue.h"

#include "absl/random/random.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace attune::store {
namespace {

constexpr absl::string_view kStale = "attune.store/stale";

std::string WhoseNow(const Job& job) {
  if (job.operation.done()) return absl::StrCat("it has ended under epoch ", job.epoch);
  if (job.holder.empty()) return "it was given back";
  return absl::StrCat(job.holder, " holds it under epoch ", job.epoch);
}

}  // namespace

JobWrite NewWrite(const Fence& fence) {
  absl::BitGen random;
  return {fence, absl::Uniform<int64_t>(random, 1, std::numeric_limits<int64_t>::max())};
}

bool IsStale(const absl::Status& status) { return status.GetPayload(kStale).has_value(); }

absl::Status StaleError(const Fence& fence, const Job& now) {
  absl::Status status = absl::AbortedError(
      absl::StrCat("the lease of ", fence.job, " under epoch ", fence.epoch, " is over: ", WhoseNow(now)));
  status.SetPayload(kStale, absl::Cord());
  return status;
}

}  // namespace attune::store
