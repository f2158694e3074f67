// Appends trials to the store in order, off the device's thread: a commit waits for the disk, the device should not.
#ifndef ATTUNE_SERVER_TRIALS_RECORDER_H_
#define ATTUNE_SERVER_TRIALS_RECORDER_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "attune/v1/trial.pb.h"
#include "server/store/store.h"
#include "server/trials/job.h"
#include "server/trials/trial_claims.h"

namespace attune::trials {

class Recorder {
 public:
  // `recorded` is called on the recorder's thread once a trial is on disk, with its name set.
  using Recorded = std::function<void(size_t candidate, const v1::Trial& trial)>;
  // Store and job outlive it.
  Recorder(store::Store* store, const Job& job, Recorded recorded);
  // Records what was added, then ends.
  ~Recorder();

  // Blocks while too many wait for a store that is unavailable. `duplicate`: the candidate added before whose result
  // this one shares; its name becomes `identical_to`. The claim ends once the trial is on disk.
  void Add(size_t candidate, v1::Trial trial, std::optional<size_t> duplicate, TrialClaims::Claim claim = {});

  // Blocks until all that was added is on disk, or could not be: then the first error, which also ends the recording.
  // A store that is unavailable is no error until the job is stopped.
  absl::Status Flush();
  absl::Status status();

 private:
  struct Entry {
    size_t candidate;
    v1::Trial trial;
    std::optional<size_t> duplicate;
    TrialClaims::Claim claim;
  };
  void Run();

  store::Store* const store_;
  const Job& job_;
  const Recorded recorded_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  bool writing_ = false;
  bool ending_ = false;
  absl::Status status_;
  std::map<size_t, std::string> names_;  // of recorded candidates; the recorder's thread alone
  std::thread thread_;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_RECORDER_H_
