// How many cycles a play-off has.
#ifndef ATTUNE_SERVER_MEASURE_CYCLES_H_
#define ATTUNE_SERVER_MEASURE_CYCLES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/measure/paired_rounds.h"

namespace attune::measure {

// Has `run` run a cycle of those named, and adds it to `rounds`, until every answer is clear, there are kMostCycles, or
// it is `late` and there are kFewestCycles; closes `rounds`' last look. Stops when `run` returns nullopt.
inline absl::Status RunCycles(
    std::optional<size_t> incumbent,
    absl::FunctionRef<absl::StatusOr<std::optional<PairedRounds::Cycle>>(const std::vector<size_t>& who)> run,
    absl::FunctionRef<bool()> late, PairedRounds& rounds) {
  for (std::vector<size_t> who = rounds.Next(incumbent); !who.empty(); who = rounds.Next(incumbent)) {
    if (rounds.cycles() >= PairedRounds::kFewestCycles && late()) {
      rounds.Close();
      break;
    }
    absl::StatusOr<std::optional<PairedRounds::Cycle>> cycle = run(who);
    if (!cycle.ok()) return cycle.status();
    if (!cycle->has_value()) return absl::OkStatus();
    rounds.Add(**std::move(cycle));
    if (rounds.cycles() == PairedRounds::kMostCycles) rounds.Close();
  }
  return absl::OkStatus();
}

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_CYCLES_H_
