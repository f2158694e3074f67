// The queue of jobs on PostgreSQL, for any number of processes. Leases go by the database's clock, to the microsecond;
// no process's clock enters. Needs read committed transactions, which it asks for, and connections straight to the
// server or through a pooler by session: settings of the session matter.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_QUEUE_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_QUEUE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/postgresql/pool.h"
#include "server/store/queue.h"

namespace attune::store::postgresql {

// What Claim does first, and when that gives none. $1: the holder, $2: the lease in microseconds, $3 and $4: the
// classes and priorities that it has room for, as arrays of equal length; the first takes any priority.
std::string ClaimLeftSql();
std::string ClaimQueuedSql();

// While the database is away, calls wait for the pool's patience, then they are Unavailable.
class PostgresqlQueue final : public Queue {
 public:
  // Makes the tables, or brings them up to date. FailedPrecondition when a newer version of this program has been
  // there.
  static absl::StatusOr<std::unique_ptr<PostgresqlQueue>> Open(PoolSettings settings);
  // The tables are there. `home`: of the host that has this queue. Jobs that are made here are its own, unless they
  // name a class or another home: only equal requests of its own join them, they alone count against its limit, and are
  // leasable to it. All are listed.
  explicit PostgresqlQueue(std::shared_ptr<Pool> pool, std::string home = "")
      : pool_(std::move(pool)), home_(std::move(home)) {}

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
  const std::shared_ptr<Pool> pool_;
  const std::string home_;
};

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_QUEUE_H_
