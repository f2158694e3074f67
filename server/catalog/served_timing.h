// The time that an incumbent is served with.
#ifndef ATTUNE_SERVER_CATALOG_SERVED_TIMING_H_
#define ATTUNE_SERVER_CATALOG_SERVED_TIMING_H_

#include "attune/v1/service.pb.h"

namespace attune::catalog {

// Of the play-off that promoted the incumbent; of its trial in those of earlier versions, which kept none.
inline const v1::Timing& ServedTiming(const v1::Incumbent& incumbent) {
  return incumbent.has_timing() ? incumbent.timing() : incumbent.trial().timing();
}

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_SERVED_TIMING_H_
