// What a run takes in joules, for people.
#ifndef ATTUNE_CLIENT_CLI_ENERGY_TEXT_H_
#define ATTUNE_CLIENT_CLI_ENERGY_TEXT_H_

#include <optional>
#include <string>

#include "attune/v1/service.pb.h"
#include "client/cli/table.h"
#include "proto/attune/objective.h"

namespace attune::cli {

// With the power, and how it was measured.
std::string EnergyText(const v1::Energy& energy);

// Of those of a play-off whose energy was measured, the thriftiest first; nullopt where there are none.
std::optional<Table> EnergyTable(const v1::TuneResult& result);
// Which of the play-off takes less energy than the winner for certain, least of all, and how to have it served; empty
// where none does. Of alternatives that this play-off has chosen a line each, and how to ask for them.
std::string LeastEnergy(const v1::TuneResult& result);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_ENERGY_TEXT_H_
