// How tune and sweep are asked to search: --strategy and --effort.
#ifndef ATTUNE_CLIENT_CLI_SEARCH_OPTIONS_H_
#define ATTUNE_CLIENT_CLI_SEARCH_OPTIONS_H_

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "attune/v1/search.pb.h"

namespace attune::cli {

struct SearchOptions {
  std::string strategy;  // its word; empty: not given
  std::string effort;
};

// `otherwise`: what the help says of a command line without --strategy.
void AddSearchOptions(CLI::App& app, const std::string& otherwise, SearchOptions* options);

// Unspecified where neither is given. An effort alone means guided, or exhaustive where it is that. InvalidArgument
// where the strategy keeps no effort.
absl::StatusOr<v1::Strategy::Kind> KindOf(const SearchOptions& options);
v1::Strategy::Effort EffortOf(const SearchOptions& options);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_SEARCH_OPTIONS_H_
