// The jobs that a job is made of: each is in the queue for any card that its own request names. Parts of a job that any
// host may do are so, too: for all cards of its class, or for one, whose host has it first.
#ifndef ATTUNE_SERVER_JOBS_PARTS_H_
#define ATTUNE_SERVER_JOBS_PARTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/fleet.h"
#include "server/store/queue.h"

namespace attune::jobs {

struct Part {
  std::string key;  // which of its parent's it is, whatever process makes it; its name has it
  store::JobKind kind = store::JobKind::kSweepProblem;
  std::string request;  // serialised, for whatever cards
  // That may work on it. Of a job that any host may do: one (catalog::CardName), or none, which stands for all.
  std::vector<std::string> cards;
};

struct MadePart {
  v1::Operation operation;
  std::vector<std::string> cards = {};  // as of a Part; of an ended one none
};

// "operations/7.KEY"
inline std::string PartName(absl::string_view parent, absl::string_view key) { return absl::StrCat(parent, ".", key); }

// Of one job, for its thread. Calls wait while the store is unavailable, until the job is stopped.
class Parts {
 public:
  virtual ~Parts() = default;
  // Of a job that any host may do, the cards of its class that work on its parts now, this host's first. None of a job
  // that is this host's alone.
  virtual absl::StatusOr<std::vector<catalog::FleetCard>> FleetCards() = 0;
  // Those that there are, made by an earlier process or another host too.
  virtual absl::StatusOr<std::vector<MadePart>> All() = 0;
  // Makes a part and queues it. One of that key that there is already stays as it is. FailedPrecondition when this host
  // has none of its cards; one for another host's card that is gone is for all.
  virtual absl::StatusOr<MadePart> Make(const Part& part) = 0;
  // In the order of their names. What other hosts work on is as old as the last look at it, of which there is one a
  // second at most. Where one was cancelled because the job was, the job has been asked to stop by then.
  virtual absl::StatusOr<std::vector<v1::Operation>> Get(const std::vector<std::string>& names) = 0;
  // Blocks until some part may have changed since the last call, or the job is stopped.
  virtual void AwaitChange() = 0;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_PARTS_H_
