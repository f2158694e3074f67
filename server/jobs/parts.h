// The jobs that a job is made of: each is in the queue for any card that its own request names.
#ifndef ATTUNE_SERVER_JOBS_PARTS_H_
#define ATTUNE_SERVER_JOBS_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "server/store/queue.h"

namespace attune::jobs {

struct Part {
  int64_t number = 0;  // among its parent's; its name has it
  store::JobKind kind = store::JobKind::kSweepProblem;
  std::string request;  // serialised
  std::string title;
  std::string problem_text;
};

// "operations/7.12": the twelfth part of operations/7.
inline std::string PartName(absl::string_view parent, int64_t number) { return absl::StrCat(parent, ".", number); }

// Of one job, for its thread. Calls wait while the store is unavailable, until the job is stopped.
class Parts {
 public:
  virtual ~Parts() = default;
  // Those that there are, made by an earlier process too.
  virtual absl::StatusOr<std::vector<v1::Operation>> All() = 0;
  // Makes a part and queues it. One of that number that there is already stays as it is.
  virtual absl::StatusOr<v1::Operation> Make(const Part& part) = 0;
  virtual absl::StatusOr<v1::Operation> Get(absl::string_view name) = 0;
  // Blocks until some part may have changed since the last call, or the job is stopped.
  virtual void AwaitChange() = 0;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_PARTS_H_
