// What every implementation of Queue must do: a fixture for tests against the interface alone. A test program says
// which implementations it runs them on.
#ifndef ATTUNE_SERVER_STORE_TESTING_QUEUE_CONTRACT_H_
#define ATTUNE_SERVER_STORE_TESTING_QUEUE_CONTRACT_H_

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/store/queue.h"
#include "server/store/testing/test_directory.h"

namespace attune::store {

class OpenedQueue {
 public:
  virtual ~OpenedQueue() = default;
  virtual Queue& queue() = 0;  // for one call: it may have to be told what time it is
};

struct QueueImplementation {
  std::string name;
  // Opens what an earlier queue in the same directory left, or makes a new one. `now` is the clock of leases.
  std::function<absl::StatusOr<std::unique_ptr<OpenedQueue>>(const std::string& directory,
                                                             std::function<absl::Time()> now)>
      open;
  std::string missing = {};  // why it cannot be tested here; empty: it can
};

inline void PrintTo(const QueueImplementation& implementation, std::ostream* out) { *out << implementation.name; }

// Each test program has its own.
std::vector<QueueImplementation> QueueImplementations();

inline std::string QueueImplementationName(const testing::TestParamInfo<QueueImplementation>& info) {
  return info.param.name;
}

class QueueContractTest : public testing::TestWithParam<QueueImplementation> {
 protected:
  void SetUp() override {
    if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
    Reopen();
  }

  void Reopen() {
    opened_.reset();
    absl::StatusOr<std::unique_ptr<OpenedQueue>> opened =
        GetParam().open(directory_.path() + "/store", [this] { return now_; });
    ASSERT_TRUE(opened.ok()) << opened.status();
    opened_ = *std::move(opened);
  }

  Queue& queue() { return opened_->queue(); }

  const TestDirectory directory_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);  // of leases; the tests' own

 private:
  std::unique_ptr<OpenedQueue> opened_;
};

// Leases the job and ends it, as its only holder.
inline void FinishJob(Queue& queue, v1::Operation operation) {
  const absl::StatusOr<std::optional<Job>> leased = queue.Lease(operation.name(), "holder", absl::Minutes(1));
  ASSERT_TRUE(leased.ok()) << leased.status();
  ASSERT_TRUE(leased->has_value()) << operation.name() << " is not to be had";
  operation.set_done(true);
  const absl::Status ended = queue.Finish({operation.name(), (*leased)->epoch}, operation);
  ASSERT_TRUE(ended.ok()) << ended;
}

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_QUEUE_CONTRACT_H_
