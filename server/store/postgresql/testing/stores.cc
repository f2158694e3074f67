// PostgreSQL's store for the contract tests, and its queue alone: each directory is a schema of the program's server.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/store/postgresql/queue.h"
#include "server/store/postgresql/store.h"
#include "server/store/postgresql/testing/server.h"
#include "server/store/testing/queue_contract.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

// Tells the database the test's time.
class Clock {
 public:
  static absl::StatusOr<std::unique_ptr<Clock>> Open(const std::string& target, std::function<absl::Time()> now) {
    auto connection = postgresql::Connection::Open({.target = target});
    if (!connection.ok()) return connection.status();
    return std::unique_ptr<Clock>(new Clock(*std::move(connection), std::move(now)));
  }

  // Before each call that asks what time it is.
  void Tell() {
    const absl::Time now = now_();
    if (now == told_) return;
    const absl::Status set = connection_->ExecuteScript(postgresql::TestServer::SetClockSql(absl::ToUnixMicros(now)));
    EXPECT_TRUE(set.ok()) << set;
    told_ = now;
  }

 private:
  Clock(std::unique_ptr<postgresql::Connection> connection, std::function<absl::Time()> now)
      : connection_(std::move(connection)), now_(std::move(now)) {}

  const std::unique_ptr<postgresql::Connection> connection_;
  const std::function<absl::Time()> now_;
  absl::Time told_ = absl::InfinitePast();
};

class ClockedQueue : public OpenedQueue {
 public:
  ClockedQueue(std::unique_ptr<postgresql::PostgresqlQueue> queue, std::unique_ptr<Clock> clock)
      : queue_(std::move(queue)), clock_(std::move(clock)) {}

  Queue& queue() override {
    clock_->Tell();
    return *queue_;
  }

 private:
  const std::unique_ptr<postgresql::PostgresqlQueue> queue_;
  const std::unique_ptr<Clock> clock_;
};

// Leases alone go by the clock.
class ClockedStore : public postgresql::PostgresqlStore {
 public:
  ClockedStore(Parts parts, const postgresql::StoreOptions& options, std::unique_ptr<Clock> clock)
      : PostgresqlStore(std::move(parts), options), clock_(std::move(clock)) {}

  Queue& queue() override {
    clock_->Tell();
    return PostgresqlStore::queue();
  }
  Hosts& hosts() override {
    clock_->Tell();
    return PostgresqlStore::hosts();
  }

  using PostgresqlStore::Parts;
  using PostgresqlStore::PartsOf;

 private:
  const std::unique_ptr<Clock> clock_;
};

std::string TargetOf(const std::string& directory) {
  static std::map<std::string, int> schemas;
  const int schema = schemas.try_emplace(directory, schemas.size()).first->second;
  return postgresql::TestServer::Get().TargetWithClock(absl::StrCat("contract", schema));
}

absl::StatusOr<std::unique_ptr<OpenedQueue>> OpenQueue(const std::string& directory, std::function<absl::Time()> now) {
  const std::string target = TargetOf(directory);
  auto queue = postgresql::PostgresqlQueue::Open({.connection = {.target = target}});
  if (!queue.ok()) return queue.status();
  auto clock = Clock::Open(target, std::move(now));
  if (!clock.ok()) return clock.status();
  return std::make_unique<ClockedQueue>(*std::move(queue), *std::move(clock));
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const std::string& directory, std::function<absl::Time()> now) {
  const std::string target = TargetOf(directory);
  auto clock = Clock::Open(target, std::move(now));
  if (!clock.ok()) return clock.status();
  postgresql::StoreOptions options;
  options.database.connection.target = target;
  options.cache_directory = directory + "/cache";
  options.blob_limit = kBlobLimit;
  auto parts = ClockedStore::PartsOf(options);
  if (!parts.ok()) return parts.status();
  auto store = std::make_unique<ClockedStore>(*std::move(parts), options, *std::move(clock));
  if (absl::Status status = store->Prepare(options.database.patience); !status.ok()) return status;
  return store;
}

}  // namespace

std::vector<Implementation> DurableImplementations() {
  return {{"postgresql", OpenStore, postgresql::TestServer::Missing()}};
}

std::vector<Implementation> Implementations() { return DurableImplementations(); }

std::vector<QueueImplementation> QueueImplementations() {
  return {{"postgresql", OpenQueue, postgresql::TestServer::Missing()}};
}

}  // namespace attune::store
