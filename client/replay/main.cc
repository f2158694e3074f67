// attune-replay: strategies on recorded spaces, without a device (docs/replay.md).
#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/status/status.h"
#include "client/replay/commands/commands.h"

namespace attune::replay {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Runs search strategies on recorded spaces, without a device");
  app.require_subcommand(1);
  absl::Status status;
  for (const auto add : {AddLeague, AddCalibration, AddTime, AddRegret, AddAdvice, AddExport, AddNearest, AddPrior,
                         AddPortfolio, AddRun, AddRecord}) {
    add(app, status);
  }
  CLI11_PARSE(app, argc, argv);
  if (status.ok()) return 0;
  std::cerr << "attune-replay: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace
}  // namespace attune::replay

int main(int argc, char** argv) { return attune::replay::Main(argc, argv); }
