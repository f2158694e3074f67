#include "client/cli/existence.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attune::cli {

absl::Status CheckFamily(Client& client, const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  const auto response = client.ListKernelFamilies();
  if (!response.ok()) return response.status();
  std::vector<std::string> names;
  for (const v1::KernelFamily& family : response->families()) names.push_back(family.name());
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no family '", name, "'; available: ", absl::StrJoin(names, ", ")));
}

absl::Status CheckOperation(Client& client, const std::string& operation) {
  return operation.empty() ? absl::OkStatus() : client.GetOperation(operation).status();
}

}  // namespace attune::cli
