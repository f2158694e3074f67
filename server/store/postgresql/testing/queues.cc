// PostgreSQL's queue for the contract tests: each directory is a schema of the program's server.
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/store/postgresql/queue.h"
#include "server/store/postgresql/testing/server.h"
#include "server/store/testing/queue_contract.h"

namespace attune::store {
namespace {

// Tells the database the test's time before each call.
class ClockedQueue : public OpenedQueue {
 public:
  ClockedQueue(std::unique_ptr<postgresql::PostgresqlQueue> queue, std::unique_ptr<postgresql::Connection> clock,
               std::function<absl::Time()> now)
      : queue_(std::move(queue)), clock_(std::move(clock)), now_(std::move(now)) {}

  Queue& queue() override {
    if (const absl::Time now = now_(); now != told_) {
      const absl::Status set = clock_->ExecuteScript(postgresql::TestServer::SetClockSql(absl::ToUnixMicros(now)));
      EXPECT_TRUE(set.ok()) << set;
      told_ = now;
    }
    return *queue_;
  }

 private:
  const std::unique_ptr<postgresql::PostgresqlQueue> queue_;
  const std::unique_ptr<postgresql::Connection> clock_;
  const std::function<absl::Time()> now_;
  absl::Time told_ = absl::InfinitePast();
};

absl::StatusOr<std::unique_ptr<OpenedQueue>> OpenQueue(const std::string& directory, std::function<absl::Time()> now) {
  static std::map<std::string, int> schemas;
  const int schema = schemas.try_emplace(directory, schemas.size()).first->second;
  const std::string target = postgresql::TestServer::Get().TargetWithClock(absl::StrCat("contract", schema));
  auto queue = postgresql::PostgresqlQueue::Open({.connection = {.target = target}});
  if (!queue.ok()) return queue.status();
  auto clock = postgresql::Connection::Open({.target = target});
  if (!clock.ok()) return clock.status();
  return std::make_unique<ClockedQueue>(*std::move(queue), *std::move(clock), std::move(now));
}

}  // namespace

std::vector<QueueImplementation> QueueImplementations() {
  return {{"postgresql", OpenQueue, postgresql::TestServer::Missing()}};
}

}  // namespace attune::store
