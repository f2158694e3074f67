#include "server/promotion/record_retiming.h"

#include "absl/time/clock.h"
#include "server/base/proto_time.h"
#include "server/trials/store_wait.h"

namespace attune::promotion {

absl::Status RecordRetiming(const v1::Trial& timed, store::Store& store, const trials::Job& job) {
  v1::Retiming retiming;
  retiming.set_problem_text(timed.problem_text());
  retiming.set_device_id(timed.device_id());
  retiming.set_device_uuid(timed.device_uuid());
  retiming.set_policy(timed.policy());
  retiming.set_variant(timed.variant().text());
  *retiming.mutable_timing() = timed.timing();
  *retiming.mutable_dependencies() = timed.dependencies();
  retiming.set_job(job.name);
  SetTimestamp(absl::Now(), retiming.mutable_finish_time());
  return trials::WriteFor(job, [&](const store::JobWrite& write) { return store.AppendRetiming(retiming, write); })
      .status();
}

}  // namespace attune::promotion
