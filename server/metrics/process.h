// What prometheus' own clients say of their process, read from /proc.
#ifndef ATTUNE_SERVER_METRICS_PROCESS_H_
#define ATTUNE_SERVER_METRICS_PROCESS_H_

#include "server/metrics/families.h"

namespace attune::metrics {

void CollectProcess(Families& families);

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_PROCESS_H_
