// When the trials of a problem under dependencies were last asked for. Kept in memory, because reading must not write;
// retention writes it down from time to time.
#ifndef ATTUNE_SERVER_STORE_ROWS_TRIAL_USES_H_
#define ATTUNE_SERVER_STORE_ROWS_TRIAL_USES_H_

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/trial.pb.h"

namespace attune::store {

struct TrialUse {
  std::string problem_text;
  std::string toolchain;
  std::string driver;
  std::string device_fingerprint;
  absl::Time time;
};

// Thread-safe.
class TrialUses {
 public:
  // Uses beyond so many are not noted: their trials look older than they are.
  static constexpr size_t kMost = 16'384;

  void Note(absl::string_view problem_text, const v1::Dependencies& dependencies, absl::Time time);
  // All noted since the last call.
  std::vector<TrialUse> Take();

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;

  std::mutex mutex_;
  std::map<Key, absl::Time> uses_;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_ROWS_TRIAL_USES_H_
