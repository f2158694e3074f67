// What a play-off leaves for the history of what is served.
#ifndef ATTUNE_SERVER_PROMOTION_RECORD_RETIMING_H_
#define ATTUNE_SERVER_PROMOTION_RECORD_RETIMING_H_

#include "absl/status/status.h"
#include "attune/v1/trial.pb.h"
#include "server/store/store.h"
#include "server/trials/job.h"

namespace attune::promotion {

// Stores the time of `timed`, which a play-off of the job has timed just now. Waits while the store is unavailable.
absl::Status RecordRetiming(const v1::Trial& timed, store::Store& store, const trials::Job& job);

}  // namespace attune::promotion

#endif  // ATTUNE_SERVER_PROMOTION_RECORD_RETIMING_H_
