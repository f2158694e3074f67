#include "client/cli/conditions.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/arguments.h"

namespace attune::cli {

void AddConditionOptions(CLI::App& app, Conditions* conditions) {
  AddRepeatable(app, "--where", &conditions->where,
                "Only variants of which this is true, an expression over parameters as manifests have them: "
                "\"BLOCK_M >= 64 && KV_SPLITS == 1\"");
  AddRepeatable(app, "--fix", &conditions->fixed, "Only variants with this value, NAME=VALUE, of a parameter");
}

absl::Status AddConditions(const Conditions& conditions, google::protobuf::RepeatedPtrField<std::string>* where) {
  for (const std::string& expression : conditions.where) *where->Add() = expression;
  for (const std::string& fixed : conditions.fixed) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(fixed, absl::MaxSplits('=', 1));
    int64_t value = 0;
    if (parts.first.empty() || !absl::SimpleAtoi(parts.second, &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--fix is ", fixed, "; allowed: NAME=VALUE with an integer, such as BLOCK_M=64"));
    }
    *where->Add() = absl::StrCat(parts.first, " == ", value);
  }
  return absl::OkStatus();
}

}  // namespace attune::cli
