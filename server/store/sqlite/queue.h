// The queue of jobs in the store's SQLite file. All writes are the writer's.
#ifndef ATTUNE_SERVER_STORE_SQLITE_QUEUE_H_
#define ATTUNE_SERVER_STORE_SQLITE_QUEUE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/queue.h"
#include "server/store/sqlite/readers.h"
#include "server/store/sqlite/writer.h"

namespace attune::store::sqlite {

class SqliteQueue final : public Queue {
 public:
  // Both outlive it. `now` is the clock of leases.
  SqliteQueue(Writer& writer, Readers& readers, std::function<absl::Time()> now)
      : writer_(writer), readers_(readers), now_(std::move(now)) {}

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
  absl::StatusOr<std::vector<LeasedJob>> Held() override;
  absl::StatusOr<Page<v1::Operation>> List(const JobFilter& filter, int page_size,
                                           absl::string_view page_token) override;

 private:
  Writer& writer_;
  Readers& readers_;
  const std::function<absl::Time()> now_;
};

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_QUEUE_H_
