// Which variants tune, space and sweep are asked to look at: --where and --fix.
#ifndef ATTUNE_CLIENT_CLI_CONDITIONS_H_
#define ATTUNE_CLIENT_CLI_CONDITIONS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace attune::cli {

struct Conditions {
  std::vector<std::string> where;  // expressions
  std::vector<std::string> fixed;  // "BLOCK_M=64"
};

void AddConditionOptions(CLI::App& app, Conditions* conditions);

// As TuneRequest.where has them. InvalidArgument names what is no NAME=VALUE.
absl::Status AddConditions(const Conditions& conditions, google::protobuf::RepeatedPtrField<std::string>* where);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_CONDITIONS_H_
