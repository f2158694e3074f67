// Whom a runtime asks: a server, a snapshot, both. Private to client/cpp/launch; only a runtime's background thread
// asks.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_ANSWERS_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_ANSWERS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"
#include "client/cpp/client.h"
#include "client/cpp/snapshot.h"
#include "proto/attune/problem.h"

namespace attune::launch {

// Used by one thread.
class Answers {
 public:
  virtual ~Answers() = default;
  // The answer that is acceptable, with its code unless `without_code`; may block for seconds. IsUnreachable
  // (client/cpp/status.h) when nobody could be asked.
  virtual absl::StatusOr<AnswerPtr> Ask(const Problem& problem, bool without_code) = 0;
  // What was kept for when nobody can be asked; NotFound when there is nothing.
  virtual absl::StatusOr<AnswerPtr> Kept(const Problem& problem) = 0;
};

struct AnswersOptions {
  std::string server = {};    // of Client::Connect; empty: none
  std::string snapshot = {};  // a file of Client::ExportSnapshot; empty: none
  std::string device = {};    // the server's name for the GPU; empty: the one with its UUID, else of its model
  v1::Policy policy = v1::POLICY_HOT;
  std::vector<v1::Provenance> acceptable = {};
  absl::Duration deadline = absl::Seconds(2);  // of each call
};

// `gpu` describes this process's. InvalidArgument for a server's address that is none; the snapshot is read now, and is
// NotFound, DataLoss or FailedPrecondition when it cannot be.
absl::StatusOr<std::unique_ptr<Answers>> OpenAnswers(AnswersOptions options, const v1::Device& gpu);

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_ANSWERS_H_
