// A job as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open: what each worker did, and when. The Trace
// Event Format: "Trace Event Format", Google, 2016, complete events ("X") and thread names ("M").
#ifndef ATTUNE_CLIENT_CLI_TIMELINE_H_
#define ATTUNE_CLIENT_CLI_TIMELINE_H_

#include <vector>

#include "attune/v1/service.pb.h"
#include "client/cli/session.h"

namespace attune::cli {

// Tracks: the operation's phases, a track for each card with its trials (check and time inside each), and one for each
// compile worker. Trials without a cost (of earlier versions, or that were not run) have no span on a card.
Json TimelineJson(const v1::Operation& operation, const std::vector<v1::Trial>& trials);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_TIMELINE_H_
