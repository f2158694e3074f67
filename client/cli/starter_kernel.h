// Small correct kernels with their manifests, to begin with: the first is slow, and every part of it explained; each
// further step adds one technique.
#ifndef ATTUNE_CLIENT_CLI_STARTER_KERNEL_H_
#define ATTUNE_CLIENT_CLI_STARTER_KERNEL_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "attune/v1/submission.pb.h"
#include "google/protobuf/repeated_field.h"

namespace attune::cli {

struct StarterStep {
  absl::string_view technique;             // "tensor cores"
  std::vector<absl::string_view> folders;  // of client/cli/starter; together they have the step's files
};

// Of `backend`, "opencl" or "cuda"; the first is plain.
const std::vector<StarterStep>& StarterSteps(absl::string_view backend);

google::protobuf::RepeatedPtrField<v1::SourceFile> FilesOf(const StarterStep& step);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_STARTER_KERNEL_H_
