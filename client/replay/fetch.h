// What a server has stored of a problem.
#ifndef ATTUNE_CLIENT_REPLAY_FETCH_H_
#define ATTUNE_CLIENT_REPLAY_FETCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/trial.pb.h"
#include "proto/attune/problem.h"

namespace attune::replay {

struct StoredTrials {
  attune::v1::Device device;
  std::vector<attune::v1::Trial> trials;  // newest first, without recipes
};

// Of one card, by id or UUID; empty: the server's first. NotFound when it has no such card.
absl::StatusOr<StoredTrials> FetchTrials(const std::string& server, const std::string& device,
                                         attune::v1::Policy policy, const Problem& problem);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_FETCH_H_
