// The operations that are in flight, and their way into the store: created once, joined when identical, finished once.
#ifndef ATTUNE_SERVER_JOBS_OPERATIONS_H_
#define ATTUNE_SERVER_JOBS_OPERATIONS_H_

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/clock.h"
#include "server/jobs/live_operation.h"
#include "server/jobs/watchers.h"
#include "server/store/store.h"

namespace attune::jobs {

// Thread-safe.
class Operations {
 public:
  static constexpr size_t kMostRequestIds = 10'000;
  static constexpr size_t kMostInFlight = 10'000;  // some 8 KB each

  explicit Operations(store::Store* store, Clock clock = SteadyNow) : store_(store), clock_(std::move(clock)) {}

  struct Wanted {
    store::JobKind kind = store::JobKind::kTune;
    std::string request;     // serialised, with its request_id
    std::string request_id;  // may be empty
    std::string identity;    // equal for requests that ask for the same
    std::string title;
    std::string problem_text = {};  // empty for a sweep
    // The same on other cards of the class that was asked for: one of these is as good, if there is one already.
    struct Same {
      std::string request;
      std::string identity;
    };
    std::vector<Same> elsewhere = {};
  };
  struct Started {
    std::shared_ptr<LiveOperation> live;  // null when it was finished before
    v1::Operation operation;
    bool fresh = false;  // to be run by the caller
  };
  // The operation with this request_id, or the identical one in flight, `elsewhere` too, or a new one, which is stored
  // first.
  // AlreadyExists when the request_id was given to a request that asked for something else, ResourceExhausted when
  // kMostInFlight are queued or running.
  absl::StatusOr<Started> Start(const Wanted& wanted);

  // A stored job that is to run again.
  std::shared_ptr<LiveOperation> Adopt(const store::Job& job, const std::string& identity);

  absl::StatusOr<v1::Operation> Get(absl::string_view name);
  std::shared_ptr<LiveOperation> Find(absl::string_view name);  // null when it is not in flight
  std::vector<std::shared_ptr<LiveOperation>> InFlight();
  absl::StatusOr<std::function<void()>> Watch(absl::string_view name, Watchers::Watcher watcher);

  // Stores the state as it is now.
  absl::Status Save(const LiveOperation& live);
  // Ends it: `error`, or OK with the response that `fill` sets. The store has it before watchers do.
  void Finish(const std::shared_ptr<LiveOperation>& live, v1::Operation::State state, const absl::Status& error,
              const std::function<void(v1::Operation&)>& fill);

 private:
  struct Entry {
    std::shared_ptr<LiveOperation> live;
    std::string identity;
  };

  std::string NewNameLocked();
  std::shared_ptr<LiveOperation> InsertLocked(const v1::Operation& operation, const std::string& identity);

  store::Store* const store_;
  const Clock clock_;
  Watchers watchers_;
  std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> in_flight_;
  std::map<std::string, std::string> by_identity_;  // of those in flight: identity to name

  // The last kMostRequestIds that came, those of requests that joined too. Of older ones the store knows those that
  // started an operation.
  struct Requested {
    std::string identity_hash;
    std::string name;
  };
  void RememberLocked(const std::string& request_id, const std::string& identity, const std::string& name);
  std::map<std::string, Requested> by_request_id_;
  std::deque<std::string> request_ids_;  // those of by_request_id_, oldest first

  uint64_t last_name_ = 0;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_OPERATIONS_H_
