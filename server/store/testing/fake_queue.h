// The queue of jobs in memory, for tests: what queue.h says. It passes the contract tests
// (store_contract_queue_test.cc).
#ifndef ATTUNE_SERVER_STORE_TESTING_FAKE_QUEUE_H_
#define ATTUNE_SERVER_STORE_TESTING_FAKE_QUEUE_H_

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/store/hosts.h"
#include "server/store/queue.h"

namespace attune::store {

class FakeQueue : public Queue {
 public:
  explicit FakeQueue(std::function<absl::Time()> now) : now_(std::move(now)) {}

  // The tests' influence: all writes give this, or all Gets.
  void FailWrites(absl::Status status);
  // RenewAll fails so, and nothing else.
  void FailRenewals(absl::Status status);
  void FailGets(absl::Status status);

  // Where there are hosts, a claim leaves a job to its home while that is LIVE and does not drain.
  void SetHosts(Hosts* hosts) { hosts_ = hosts; }

  // Makes what a write for a job makes, named by `make`, once. For the store.
  absl::StatusOr<std::string> Once(const JobWrite& write, absl::FunctionRef<absl::StatusOr<std::string>()> make);

  // The job's own and those of its parts. For the store.
  std::set<std::string> WithParts(const std::string& name);

  absl::StatusOr<Job> Create(const Job& job, const JoinTerms& terms) override;
  absl::Status Identify(absl::string_view name, absl::string_view identity) override;
  absl::StatusOr<std::optional<Job>> Lease(absl::string_view name, absl::string_view holder,
                                           absl::Duration duration) override;
  absl::StatusOr<Job> Renew(const Fence& fence, absl::Duration duration) override;
  absl::StatusOr<std::vector<LeasedJob>> RenewAll(absl::string_view holder, absl::Duration duration) override;
  absl::Status Update(const Fence& fence, const v1::Operation& operation) override;
  absl::Status Finish(const Fence& fence, const v1::Operation& operation) override;
  absl::Status Requeue(const Fence& fence) override;
  absl::StatusOr<Job> Cancel(absl::string_view name) override;
  absl::StatusOr<Job> Get(absl::string_view name) override;
  absl::StatusOr<std::vector<std::string>> Leasable(absl::string_view holder) override;
  absl::StatusOr<std::optional<Job>> Claim(absl::string_view holder, const std::vector<Room>& rooms,
                                           absl::Duration duration) override;
  absl::StatusOr<std::vector<LeasedJob>> Held() override;
  absl::StatusOr<Page<v1::Operation>> List(const JobFilter& filter, int page_size,
                                           absl::string_view page_token) override;

 private:
  struct Stored {
    Job job;
    std::string problem;                    // as it was created with
    std::map<int64_t, std::string> writes;  // under the last lease: id to what was made
  };
  struct Requested {
    size_t job = 0;  // of jobs_
    std::string identity;
  };

  // Changes the job, which the fence holds.
  absl::StatusOr<Job> Change(const Fence& fence, absl::FunctionRef<void(Stored&)> change);
  void CancelPartsLocked(absl::string_view parent);
  std::vector<LeasedJob> HeldLocked(absl::string_view holder);
  Stored* FindLocked(absl::string_view name);
  Stored* FindIdenticalLocked(absl::string_view identity);

  // Holders of hosts that are LIVE and do not drain.
  std::set<std::string> HomesThere();

  const std::function<absl::Time()> now_;
  Hosts* hosts_ = nullptr;
  std::mutex mutex_;
  absl::Status writes_;
  absl::Status renewals_;
  absl::Status gets_;
  std::vector<Stored> jobs_;
  std::map<std::string, Requested> request_ids_;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_FAKE_QUEUE_H_
