// Trials as people read them.
#ifndef ATTUNE_CLIENT_CLI_TRIAL_TEXT_H_
#define ATTUNE_CLIENT_CLI_TRIAL_TEXT_H_

#include "attune/v1/service.pb.h"
#include "client/cli/table.h"

namespace attune::cli {

// One trial a row.
Table TrialTable();
void AddTrial(const v1::Trial& trial, Table* table);

// One trial, a line for each of its figures.
Table TrialFields(const v1::Trial& trial);

// Two columns without headers: what, and its value.
Table FieldTable();
void AddTiming(const v1::Timing& timing, Table* fields);
void AddGeometry(const v1::Geometry& geometry, Table* fields);
void AddAccuracy(const v1::Accuracy& accuracy, Table* fields);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_TRIAL_TEXT_H_
