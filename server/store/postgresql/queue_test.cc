#include "server/store/postgresql/queue.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/postgresql/testing/server.h"

namespace attune::store::postgresql {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr absl::Duration kLease = absl::Minutes(10);

class PostgresqlQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = TestServer::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    static int schemas = 0;
    target_ = TestServer::Get().Target(absl::StrCat("queue", schemas++));
    queue_ = Open();
    absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open({.target = target_});
    ASSERT_TRUE(connection.ok()) << connection.status();
    connection_ = *std::move(connection);
  }

  std::unique_ptr<PostgresqlQueue> Open() const {
    absl::StatusOr<std::unique_ptr<PostgresqlQueue>> queue =
        PostgresqlQueue::Open({.connection = {.target = target_}, .patience = absl::Minutes(3)});
    EXPECT_TRUE(queue.ok()) << queue.status();
    return *std::move(queue);
  }

  static Job Make(const std::string& name, const std::string& identity = "") {
    Job job;
    job.name = name;
    job.request = "request";
    job.identity = identity;
    job.operation.set_name(name);
    return job;
  }
  void MustCreate(const std::string& name) {
    Job job = Make(name);
    job.device_class = "l4";
    const absl::Status made = queue_->Create(job, {}).status();
    ASSERT_TRUE(made.ok()) << made;
  }

  std::optional<Job> Claim(const std::string& holder) {
    absl::StatusOr<std::optional<Job>> claimed = queue_->Claim(holder, {{"l4", 0}}, kLease);
    EXPECT_TRUE(claimed.ok()) << claimed.status();
    return claimed.value_or(std::nullopt);
  }

  void Script(const std::string& sql) {
    const absl::Status done = connection_->ExecuteScript(sql);
    ASSERT_TRUE(done.ok()) << done;
  }

  // The plan of a statement as text; `parameters` for its $1 and so on.
  template <typename... Values>
  std::string Plan(const std::string& sql, const Values&... parameters) {
    absl::StatusOr<Rows> rows = connection_->Query("EXPLAIN " + sql, parameters...);
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::string plan;
    while (rows.ok() && *rows->Step()) absl::StrAppend(&plan, rows->Text(0), "\n");
    return plan;
  }

  std::string target_;
  std::unique_ptr<PostgresqlQueue> queue_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(PostgresqlQueueTest, ClaimsTheOldestFirst) {
  for (const char* name : {"operations/b", "operations/a"}) MustCreate(name);
  const std::optional<Job> first = Claim("one");
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->name, "operations/b");
  EXPECT_EQ(first->holder, "one");
  EXPECT_EQ(first->epoch, 1);
  EXPECT_EQ(Claim("one")->name, "operations/a");
  EXPECT_FALSE(Claim("one").has_value()) << "what it holds itself is no new work";
}

TEST_F(PostgresqlQueueTest, ClaimsWhatItsHolderHasLostBeforeWhatNobodyHeld) {
  MustCreate("operations/a");
  MustCreate("operations/b");
  const std::optional<Job> lost = Claim("one");
  ASSERT_TRUE(lost.has_value());
  Script("INSERT INTO job_writes SELECT id, 1, 1 FROM jobs; UPDATE jobs SET lease_until = now() WHERE holder = 'one'");
  const std::optional<Job> taken = Claim("two");
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->name, "operations/a");
  EXPECT_EQ(taken->epoch, lost->epoch + 1);
  EXPECT_TRUE(IsStale(queue_->Renew({lost->name, lost->epoch}, kLease).status()));
  absl::StatusOr<Rows> writes = connection_->Query("SELECT name FROM job_writes JOIN jobs ON id = job_id");
  ASSERT_TRUE(writes.ok() && *writes->Step());
  EXPECT_EQ(writes->Text(0), "operations/b") << "those of the lease that is over are forgotten";
  EXPECT_EQ(writes->size(), 1);
}

TEST_F(PostgresqlQueueTest, ClaimsNothingThatHasEnded) {
  MustCreate("operations/a");
  const std::optional<Job> job = Claim("one");
  v1::Operation ended = job->operation;
  ended.set_done(true);
  ASSERT_TRUE(queue_->Finish({job->name, job->epoch}, ended).ok());
  Script("UPDATE jobs SET lease_until = now()");
  EXPECT_FALSE(Claim("two").has_value());
}

TEST_F(PostgresqlQueueTest, OfManyWhoClaimAtOnceEachGetsItsOwn) {
  constexpr int kJobs = 200;
  for (int i = 0; i < kJobs; ++i) MustCreate(absl::StrCat("operations/", i));
  std::array<std::vector<std::string>, 6> claimed;
  {
    std::vector<std::jthread> hosts;
    for (size_t host = 0; host < claimed.size(); ++host) {
      hosts.emplace_back([&, host, queue = std::shared_ptr<PostgresqlQueue>(Open())] {
        for (;;) {
          const absl::StatusOr<std::optional<Job>> job = queue->Claim(absl::StrCat("host ", host), {{"l4", 0}}, kLease);
          ASSERT_TRUE(job.ok()) << job.status();
          if (!job->has_value()) return;
          EXPECT_EQ((*job)->epoch, 1);
          claimed[host].push_back((*job)->name);
        }
      });
    }
  }
  std::set<std::string> all;
  size_t claims = 0;
  for (const std::vector<std::string>& names : claimed) {
    all.insert(names.begin(), names.end());
    claims += names.size();
  }
  EXPECT_EQ(claims, kJobs);
  EXPECT_EQ(all.size(), kJobs);
}

TEST_F(PostgresqlQueueTest, OfManyWhoLeaseOneJobOneGetsIt) {
  MustCreate("operations/a");
  std::atomic<int> leases = 0;
  {
    std::vector<std::jthread> hosts;
    for (int host = 0; host < 4; ++host) {
      hosts.emplace_back([&, host] {
        const auto leased = queue_->Lease("operations/a", absl::StrCat("host ", host), kLease);
        ASSERT_TRUE(leased.ok()) << leased.status();
        if (leased->has_value()) ++leases;
      });
    }
  }
  EXPECT_EQ(leases, 1);
}

TEST_F(PostgresqlQueueTest, RequestsThatAskForTheSameAtOnceAreOneJob) {
  constexpr int kRequests = 12;
  for (int round = 0; round < 5; ++round) {
    std::array<std::string, kRequests> joined;
    {
      std::vector<std::jthread> clients;
      for (int i = 0; i < kRequests; ++i) {
        clients.emplace_back([&, i] {
          Job job = Make(absl::StrCat("operations/", round, ".", i), absl::StrCat("work ", round));
          job.request_id = absl::StrCat("request ", round, " ", i % 3);
          const absl::StatusOr<Job> made = queue_->Create(job, {});
          ASSERT_TRUE(made.ok()) << made.status();
          joined[static_cast<size_t>(i)] = made->name;
        });
      }
    }
    EXPECT_EQ(std::set<std::string>(joined.begin(), joined.end()).size(), 1U);
  }
}

TEST_F(PostgresqlQueueTest, NoMoreThanTheMostAreMadeAtOnce) {
  constexpr int kMost = 3;
  std::atomic<int> made = 0;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 10; ++i) {
      clients.emplace_back([&, i] {
        const absl::Status status =
            queue_->Create(Make(absl::StrCat("operations/", i)), {.most_unfinished = kMost}).status();
        if (status.ok()) ++made;
        EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
      });
    }
  }
  EXPECT_EQ(made, kMost);
}

// A part that is made while its parent is cancelled is cancelled too, whichever came first.
TEST_F(PostgresqlQueueTest, NoPartEscapesItsParentsCancellation) {
  for (int round = 0; round < 20; ++round) {
    const std::string parent = absl::StrCat("operations/", round);
    MustCreate(parent);
    Job part = Make(parent + ".1");
    part.parent = parent;
    {
      const std::jthread maker([&] { EXPECT_TRUE(queue_->Create(part, {}).ok()); });
      const std::jthread canceller([&] { EXPECT_TRUE(queue_->Cancel(parent).ok()); });
    }
    EXPECT_TRUE(queue_->Get(part.name)->cancelled);
  }
}

TEST_F(PostgresqlQueueTest, DamagedJobsAreNamedAndHoldNobodyUp) {
  for (const char* name : {"operations/a", "operations/b"}) MustCreate(name);
  Script("UPDATE jobs SET operation = '\\xff' WHERE name = 'operations/a'");
  EXPECT_EQ(queue_->Get("operations/a").status().code(), absl::StatusCode::kDataLoss);
  Script("UPDATE jobs SET device_class = NULL");
  EXPECT_THAT(*queue_->Leasable("one"), ElementsAre("operations/a", "operations/b"));
  Script("UPDATE jobs SET device_class = 'l4'");
  const absl::StatusOr<Page<v1::Operation>> listed = queue_->List({}, 10, "");
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->items.size(), 2U);
  EXPECT_EQ(listed->items[1].name(), "operations/a");
  EXPECT_EQ(listed->items[1].state(), v1::Operation::STATE_FAILED);
  EXPECT_EQ(queue_->Claim("one", {{"l4", 0}}, kLease).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Claim("one")->name, "operations/b");
}

TEST_F(PostgresqlQueueTest, LeasesGoByTheDatabasesClock) {
  MustCreate("operations/a");
  const std::optional<Job> job = Claim("one");
  absl::StatusOr<Rows> left = connection_->Query(
      "SELECT (extract(epoch FROM lease_until - now()))::bigint FROM jobs WHERE name = 'operations/a'");
  ASSERT_TRUE(left.ok() && *left->Step());
  EXPECT_LE(left->Int(0), absl::ToInt64Seconds(kLease));
  EXPECT_GT(left->Int(0), 0);
  Script("UPDATE jobs SET lease_until = now() - interval '1 microsecond'");
  EXPECT_TRUE((*queue_->Lease("operations/a", "two", kLease)).has_value());
}

TEST_F(PostgresqlQueueTest, TheClaimReadsPartialIndexesHoweverMuchIsQueued) {
  // In steps, each well within what a statement may take on a busy machine.
  for (int first = 1; first <= 200'000; first += 25'000) {
    Script(absl::StrCat(R"(INSERT INTO jobs (name, kind, request, done, cancelled, operation, device_class, holder,
                                             epoch, lease_until)
                           SELECT 'operations/' || i, 1, '', i <= 100000, false, '',
                                  CASE WHEN i % 2 = 0 THEN 'l4' ELSE 'h200' END,
                                  CASE WHEN i % 1000 = 1 THEN 'host ' || i END, 1,
                                  CASE WHEN i % 1000 = 1 THEN now() + interval '1 hour' END
                           FROM generate_series()",
                        first, ", ", first + 24'999, ") AS i"));
  }
  Script("ANALYZE jobs");
  const int64_t lease = absl::ToInt64Microseconds(kLease);
  EXPECT_THAT(Plan(ClaimQueuedSql(), "one", lease, "{l4,t4}", "{0,1}"),
              AllOf(HasSubstr("Index Scan using jobs_of_class"), Not(HasSubstr("Seq Scan on jobs"))));
  EXPECT_THAT(Plan(ClaimLeftSql(), "one", lease, "{l4}", "{0}"),
              AllOf(HasSubstr("using jobs_held"), Not(HasSubstr("Seq Scan on jobs"))));
  EXPECT_EQ(Claim("one")->name, "operations/100002");
}

// Writes that were answered are there after the server was killed, and its clients go on without being told.
TEST_F(PostgresqlQueueTest, WhatWasAnsweredOutlivesTheServersDeath) {
  std::vector<std::string> made;
  std::map<std::string, int64_t> ended;
  std::atomic<bool> stop = false;
  std::atomic<bool> stopped = false;
  const auto work = [&] {
    const absl::Cleanup say = [&] { stopped = true; };
    for (int i = 0; !stop; ++i) {
      const std::string name = absl::StrCat("operations/", i);
      const absl::StatusOr<Job> job = queue_->Create(Make(name), {});
      ASSERT_TRUE(job.ok()) << job.status();
      made.push_back(name);
      const absl::StatusOr<std::optional<Job>> leased = queue_->Lease(name, "one", kLease);
      ASSERT_TRUE(leased.ok() && leased->has_value()) << leased.status();
      v1::Operation operation = (*leased)->operation;
      operation.set_done(true);
      const absl::Status finished = queue_->Finish({name, (*leased)->epoch}, operation);
      ASSERT_TRUE(finished.ok()) << finished;
      ended[name] = (*leased)->epoch;
    }
  };
  const auto count = [this] {
    absl::StatusOr<Rows> rows = absl::UnavailableError("");
    do {
      absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open({.target = target_});
      if (connection.ok()) rows = (*connection)->Query("SELECT count(*) FROM jobs WHERE done");
    } while (!rows.ok());
    return *rows->Step() ? rows->Int(0) : -1;
  };
  {
    std::vector<std::jthread> worker;
    worker.emplace_back(work);
    for (int kill = 0; kill < 3; ++kill) {
      const int64_t before = count();
      while (!stopped && count() < before + 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      TestServer::Get().Kill();
      TestServer::Get().Start();
    }
    stop = true;
  }
  ASSERT_FALSE(ended.empty());
  for (const std::string& name : made) ASSERT_TRUE(queue_->Get(name).ok()) << name;
  for (const auto& [name, epoch] : ended) {
    const absl::StatusOr<Job> job = queue_->Get(name);
    EXPECT_TRUE(job->operation.done()) << name;
    EXPECT_EQ(job->epoch, epoch) << name;
  }
}

TEST_F(PostgresqlQueueTest, WithoutServerCallsAreUnavailableAfterAWhile) {
  const auto hasty = PostgresqlQueue::Open(
      {.connection = {.target = "host=/tmp/attune_no_such_folder"}, .patience = absl::Milliseconds(50)});
  EXPECT_EQ(hasty.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace attune::store::postgresql
