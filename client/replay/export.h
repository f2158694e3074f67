// Recordings in the formats of other tuners: Kernel Tuner's cache, which its simulation mode replays, and the results
// of the T4 schema (https://github.com/odgaard/TuningSchema).
#ifndef ATTUNE_CLIENT_REPLAY_EXPORT_H_
#define ATTUNE_CLIENT_REPLAY_EXPORT_H_

#include <string>

#include "attune/replay/v1/recording.pb.h"

namespace attune::replay {

// Both take a recording of one family (OnlyFamily), since both formats have one list of parameters, and write times in
// ms. Only medians were recorded: neither format's list of single runs is filled.

// Kernel Tuner 1.5's cache file: https://kerneltuner.github.io/kernel_tuner/stable/cache_files.html. `problem_size` is
// batch, heads_q and seq_q. `benchmark_time` is the trial's from end to end, its check included.
std::string KernelTunerCache(const v1::Recording& recording);

// T4 results, schema 1.0.0. `measurements` has the median, its interval and the minimum, and the code's resources.
std::string T4Results(const v1::Recording& recording);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_EXPORT_H_
