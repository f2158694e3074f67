// Makes a recording of what a server has stored of a problem.
#ifndef ATTUNE_CLIENT_REPLAY_RECORD_H_
#define ATTUNE_CLIENT_REPLAY_RECORD_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/replay/v1/recording.pb.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/trial.pb.h"
#include "proto/attune/problem.h"
#include "server/space/space.h"

namespace attune::replay {

// Each variant's newest trial under `families`' sources, LOST ones left out. `trials` are of one problem, one card and
// one policy, newest first, as the server lists them. Where trials were made under several toolchains or drivers, only
// those under that of the newest count. NotFound when nothing is left.
absl::StatusOr<v1::Recording> MakeRecording(const Problem& problem, const attune::v1::Device& device,
                                            const std::vector<attune::v1::Trial>& trials,
                                            const std::vector<std::shared_ptr<const space::Family>>& families);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_RECORD_H_
