#include "server/jobs/forget_host.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/jobs/operation_end.h"

namespace attune::jobs {
namespace {

v1::Operation Ended(const store::Job& job, absl::string_view host) {
  v1::Operation last = job.operation;
  SetEnded(job.cancelled ? v1::Operation::STATE_CANCELLED : v1::Operation::STATE_FAILED, last);
  if (!job.cancelled) {
    SetFailed(absl::AbortedError(absl::StrCat(host, ", whose device it names, was forgotten")), last);
  }
  return last;
}

absl::Status CheckForgettable(store::Hosts& hosts, absl::string_view name) {
  const absl::StatusOr<std::vector<v1::Host>> all = hosts.List();
  if (!all.ok()) return all.status();
  const auto host = std::find_if(all->begin(), all->end(), [name](const v1::Host& it) { return it.name() == name; });
  return host == all->end() ? store::NoHost(name) : store::CheckForgettable(*host);
}

// Jobs of `host` that no other may work on.
absl::Status EndOwn(store::Queue& queue, absl::string_view host) {
  const std::string holder = store::HolderOf(host);
  const absl::StatusOr<std::vector<std::string>> left = queue.Leasable(holder);
  if (!left.ok()) return left.status();
  for (const std::string& name : *left) {
    const absl::StatusOr<store::Job> job = queue.Get(name);
    if (absl::IsNotFound(job.status()) || absl::IsDataLoss(job.status())) continue;
    if (!job.ok()) return job.status();
    if (job->home != holder) continue;
    const absl::StatusOr<std::optional<store::Job>> leased = queue.Lease(name, holder, store::kHostTtl);
    if (!leased.ok()) return leased.status();
    if (!leased->has_value()) continue;
    const absl::Status ended = queue.Finish({name, (*leased)->epoch}, Ended(**leased, host));
    if (!ended.ok()) return ended;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::Host> ForgetHost(store::Store& store, absl::string_view name) {
  if (absl::Status status = CheckForgettable(store.hosts(), name); !status.ok()) return status;
  if (absl::Status status = EndOwn(store.queue(), name); !status.ok()) return status;
  return store.hosts().Forget(name);
}

}  // namespace attune::jobs
