// The hosts' table. Its clock is the database's.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_HOSTS_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_HOSTS_H_

#include <memory>
#include <utility>
#include <vector>

#include "server/store/hosts.h"
#include "server/store/postgresql/pool.h"

namespace attune::store::postgresql {

// While the database is away, calls wait for the pool's patience, then they are Unavailable.
class PostgresqlHosts final : public Hosts {
 public:
  // The tables are there.
  explicit PostgresqlHosts(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}

  absl::Status Register(const v1::Host& host, int64_t incarnation) override;
  absl::StatusOr<bool> Beat(absl::string_view name, int64_t incarnation) override;
  absl::Status Leave(absl::string_view name, int64_t incarnation) override;
  absl::StatusOr<std::vector<v1::Host>> List() override;
  absl::StatusOr<v1::Host> SetDraining(absl::string_view name, bool draining) override;
  absl::StatusOr<v1::Host> Forget(absl::string_view name) override;

 private:
  const std::shared_ptr<Pool> pool_;
};

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_HOSTS_H_
