// The last few, checked on fresh data and then timed in turn, round by round, in several cycles.
#ifndef ATTUNE_SERVER_PROMOTION_PLAY_OFF_H_
#define ATTUNE_SERVER_PROMOTION_PLAY_OFF_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/catalog/tuning_key.h"
#include "server/measure/paired_rounds.h"
#include "server/search/candidates.h"
#include "server/trials/code.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"

namespace attune::promotion {

struct Contestant {
  search::Candidate candidate;
  v1::Trial trial;  // what it takes part with
};

// What a play-off has come to.
struct PlayedOff {
  // The contestants' trials, in their order, with this play-off's verdict, detail, accuracy and timing; with recipes.
  // One whose check failed has the verdict that says how, as has one that takes the device's worker down
  // (supervisor/device_worker.h); one whose answer is lost otherwise is LOST. Unless all are OK, none has a time that
  // counts.
  std::vector<v1::Trial> trials;
  measure::PairedRounds rounds;  // by contestant
};

// One play-off in cycles (measure/cycles.h), the first after a check on fresh data; of `incumbent`, a contestant's
// place, against the others.
absl::StatusOr<PlayedOff> PlayOff(const catalog::TuningKey& tuning_key, const std::vector<Contestant>& contestants,
                                  std::optional<size_t> incumbent, uint64_t fresh_seed, const trials::CodeSource& code,
                                  const trials::Job& job, trials::DeviceUse& use);

// Runs each many more times and compares every result: what is wrong once in a hundred runs. In the contestants' order;
// without timing.
absl::StatusOr<std::vector<v1::Trial>> CheckManyRuns(const catalog::TuningKey& tuning_key,
                                                     const std::vector<Contestant>& contestants,
                                                     const trials::CodeSource& code, const trials::Job& job,
                                                     trials::DeviceUse& use);

// Of one alone, which came through its play-off as `timed`: that, or what CheckManyRuns finds wrong.
absl::StatusOr<v1::Trial> AfterManyRuns(const catalog::TuningKey& tuning_key, const Contestant& contestant,
                                        v1::Trial timed, const trials::CodeSource& code, const trials::Job& job,
                                        trials::DeviceUse& use);

// What a run takes in joules, or why that is not known; and what the runs for it have brought to light.
struct EnergyAnswer {
  v1::Verdict verdict = v1::VERDICT_OK;
  std::optional<v1::Energy> energy;
  std::string detail;  // without an energy
};
// Of each, in their order. An error only where the device cannot be used.
absl::StatusOr<std::vector<EnergyAnswer>> MeasureEnergies(const catalog::TuningKey& tuning_key,
                                                          const std::vector<Contestant>& contestants,
                                                          const trials::CodeSource& code, const trials::Job& job,
                                                          trials::DeviceUse& use);

}  // namespace attune::promotion

#endif  // ATTUNE_SERVER_PROMOTION_PLAY_OFF_H_
