// The jobs that a job is made of: each is in the queue for any card that its own request names.
#ifndef ATTUNE_SERVER_JOBS_PARTS_H_
#define ATTUNE_SERVER_JOBS_PARTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "server/store/queue.h"

namespace attune::jobs {

struct Part {
  std::string key;  // which of its parent's it is, whatever process makes it; its name has it
  store::JobKind kind = store::JobKind::kSweepProblem;
  std::string request;             // serialised, for whatever cards
  std::vector<std::string> cards;  // that may work on it
};

struct MadePart {
  v1::Operation operation;
  std::vector<std::string> cards = {};  // that may work on it; of an ended one none
};

// "operations/7.KEY"
inline std::string PartName(absl::string_view parent, absl::string_view key) { return absl::StrCat(parent, ".", key); }

// Of one job, for its thread. Calls wait while the store is unavailable, until the job is stopped.
class Parts {
 public:
  virtual ~Parts() = default;
  // Those that there are, made by an earlier process too.
  virtual absl::StatusOr<std::vector<MadePart>> All() = 0;
  // Makes a part and queues it. One of that key that there is already stays as it is. FailedPrecondition when this host
  // has none of its cards.
  virtual absl::StatusOr<MadePart> Make(const Part& part) = 0;
  virtual absl::StatusOr<v1::Operation> Get(absl::string_view name) = 0;
  // Blocks until some part may have changed since the last call, or the job is stopped.
  virtual void AwaitChange() = 0;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_PARTS_H_
