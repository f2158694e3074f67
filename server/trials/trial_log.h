// What the daemon's log says of trials.
#ifndef ATTUNE_SERVER_TRIALS_TRIAL_LOG_H_
#define ATTUNE_SERVER_TRIALS_TRIAL_LOG_H_

#include "attune/v1/trial.pb.h"

namespace attune::trials {

// At the level debug.
void LogTrial(const v1::Trial& trial);

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_TRIAL_LOG_H_
