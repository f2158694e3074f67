// The files of client/cli/starter, as they were when this was built.
#ifndef ATTUNE_CLIENT_CLI_STARTER_FILES_H_
#define ATTUNE_CLIENT_CLI_STARTER_FILES_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace attune::cli {

struct EmbeddedFile {
  absl::string_view name;  // "cuda_1_plain/attention.cu"
  absl::string_view bytes;
};
// By name. Written by client/embed.cmake.
const std::vector<EmbeddedFile>& EmbeddedFiles();

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_STARTER_FILES_H_
