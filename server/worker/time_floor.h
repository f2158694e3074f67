// The shortest time in which a device can do what a problem asks for at all: a timing below it is of a kernel that did
// something else, however right its results were when they were looked at.
#ifndef ATTUNE_SERVER_WORKER_TIME_FLOOR_H_
#define ATTUNE_SERVER_WORKER_TIME_FLOOR_H_

#include <cstddef>
#include <string>

#include "attune/v1/device.pb.h"
#include "attune/v1/trial.pb.h"
#include "proto/attune/problem.h"

namespace attune::worker {

// Lower bounds of one run on the inputs that timing uses, from the device's published rates; 0 where a rate is not
// known, or where what must be moved may have stayed in L2.
struct TimeFloor {
  double bytes_us = 0;
  double flops_us = 0;
};
// `sets`: input sets that the runs took in turn, one behind the other.
TimeFloor TimeFloorOf(const Problem& problem, const attune::v1::Device& device, attune::v1::Policy policy, size_t sets);

// Empty, or why a run cannot have taken `us`: more than a tenth below the floor.
std::string BelowFloor(double us, const Problem& problem, const attune::v1::Device& device, attune::v1::Policy policy,
                       size_t sets);

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_TIME_FLOOR_H_
