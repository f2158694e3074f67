// A recording of one family with one parameter, for tests.
#ifndef ATTUNE_CLIENT_REPLAY_TESTING_RECORDING_OF_H_
#define ATTUNE_CLIENT_REPLAY_TESTING_RECORDING_OF_H_

#include <string>
#include <vector>

#include "attune/replay/v1/recording.pb.h"

namespace attune::replay {

// `us[i]`: the time of tiles:BLOCK=i; 0: it failed.
inline v1::Recording RecordingOf(const std::string& problem, const std::vector<double>& us) {
  v1::Recording recording;
  recording.set_problem(problem);
  recording.set_device_model("a card");
  recording.set_device_class("class");
  recording.set_policy(attune::v1::POLICY_HOT);
  v1::Family& family = *recording.add_families();
  family.set_name("tiles");
  family.set_source_hash("source");
  family.add_parameters("BLOCK");
  for (size_t i = 0; i < us.size(); ++i) {
    v1::Row& row = *recording.add_rows();
    row.add_values(static_cast<int64_t>(i));
    row.set_verdict(us[i] > 0 ? attune::v1::VERDICT_OK : attune::v1::VERDICT_WRONG_RESULT);
    row.set_median_us(us[i]);
  }
  return recording;
}

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_TESTING_RECORDING_OF_H_
