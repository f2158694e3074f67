#include "server/jobs/forget_host.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/proto_time.h"

namespace attune::jobs {
namespace {

v1::Operation Ended(const store::Job& job, absl::string_view host) {
  v1::Operation last = job.operation;
  last.set_done(true);
  SetTimestamp(absl::Now(), last.mutable_end_time());
  last.set_state(job.cancelled ? v1::Operation::STATE_CANCELLED : v1::Operation::STATE_FAILED);
  if (job.cancelled) return last;
  last.mutable_error()->set_code(static_cast<int>(absl::StatusCode::kAborted));
  last.mutable_error()->set_message(absl::StrCat(host, ", whose device it names, was forgotten"));
  last.mutable_progress()->set_message(last.error().message());
  return last;
}

}  // namespace

absl::StatusOr<v1::Host> ForgetHost(store::Store& store, absl::string_view name) {
  absl::StatusOr<v1::Host> host = store.hosts().Forget(name);
  if (!host.ok()) return host;
  store::Queue& queue = store.queue();
  const std::string holder = store::HolderOf(name);
  const absl::StatusOr<std::vector<std::string>> left = queue.Leasable(holder);
  if (!left.ok()) return left.status();
  for (const std::string& job_name : *left) {
    const absl::StatusOr<store::Job> job = queue.Get(job_name);
    if (!job.ok() || job->home != holder) continue;
    const absl::StatusOr<std::optional<store::Job>> leased = queue.Lease(job_name, holder, store::kHostTtl);
    if (!leased.ok()) return leased.status();
    if (!leased->has_value()) continue;
    const absl::Status ended = queue.Finish({job_name, (*leased)->epoch}, Ended(**leased, name));
    if (!ended.ok()) return ended;
  }
  return host;
}

}  // namespace attune::jobs
