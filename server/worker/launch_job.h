// --role=launch: a candidate by itself, for a tool that watches the process.
#ifndef ATTUNE_SERVER_WORKER_LAUNCH_JOB_H_
#define ATTUNE_SERVER_WORKER_LAUNCH_JOB_H_

#include "absl/status/status.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/device/device.h"

namespace attune::worker {

// Runs it `runs` times on the inputs that timings are of. Every buffer is an allocation of its own, of exactly its
// size, so that a tool sees what is written or read behind it; nothing is written to outputs and scratch but what the
// recipe asks for, so that it sees what is read and was never written. Results are not looked at.
absl::Status Launch(device::Device& device, const worker::v1::LaunchJob& job);

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_LAUNCH_JOB_H_
