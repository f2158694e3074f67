// An operation's progress as text: what to show is a function of its state and the terminal's width.
#ifndef ATTUNE_CLIENT_CLI_PROGRESS_H_
#define ATTUNE_CLIENT_CLI_PROGRESS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "attune/v1/service.pb.h"

namespace attune::cli {

// Lines for a terminal, none longer than `width`: what runs and in which phase, or what it waits for; bar, rate, ETA
// and how busy the device is; the best so far; the verdicts. A sweep's bar and ETA are of its problems.
std::vector<std::string> RenderProgress(const v1::Operation& operation, size_t width, bool colored);

// What the message says that a log should have: what the operation waits for the store for, or what it goes on from.
// Empty where it names a step among many.
std::string NotableMessage(const v1::OperationProgress& progress);

// The same as one line of a log.
std::string ProgressLogLine(const v1::Operation& operation);

// Trials that were really run (not reused from the store) a second; 0 before there are any, and for a sweep, whose
// trials are those of one problem.
double TrialsPerSecond(const v1::OperationProgress& progress);

// "waiting for operations/7 (tune b1.h1.q128.d64.f16 on cuda:0), 2 jobs ahead"; empty when it waits for none.
std::string WaitText(const v1::OperationProgress& progress);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_PROGRESS_H_
