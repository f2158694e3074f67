// Where commands put what they make.
#ifndef ATTUNE_CLIENT_REPLAY_COMMANDS_WRITE_FILE_H_
#define ATTUNE_CLIENT_REPLAY_COMMANDS_WRITE_FILE_H_

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attune::replay {

// Unavailable, with the path, where it cannot be written.
inline absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_COMMANDS_WRITE_FILE_H_
