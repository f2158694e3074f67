// What it takes to check a problem at all, so that one that cannot fit is refused before anything is allocated.
#ifndef ATTUNE_SERVER_VERIFY_FOOTPRINT_H_
#define ATTUNE_SERVER_VERIFY_FOOTPRINT_H_

#include "absl/status/status.h"
#include "attune/v1/device.pb.h"
#include "proto/attune/problem.h"

namespace attune::verify {

// Bytes that a prepared problem holds (PreparedProblem), at least: zones, scratch and what timing adds are left out.
struct Footprint {
  double device = 0;
  double host = 0;
};
Footprint FootprintOf(const Problem& problem);

// FailedPrecondition when the problem cannot fit the device's memory and the host's, `host_bytes`: on a device whose
// memory is the host's both together. 0: not known, and not checked.
absl::Status CheckFits(const Problem& problem, const v1::Device& device, double host_bytes);

// This host's memory; 0 when it cannot be told.
double HostBytes();

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_FOOTPRINT_H_
