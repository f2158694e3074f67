// Whole files, read at once and replaced at once.
#ifndef ATTUNE_CLIENT_CPP_FILES_H_
#define ATTUNE_CLIENT_CPP_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune {

absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes a temporary file in the same folder, fsyncs and renames it, so that no reader ever sees half a file. The
// folder must exist.
absl::Status ReplaceFile(const std::string& path, absl::string_view contents);
// Why ReplaceFile would fail with any contents, so that long work need not end there. Leaves nothing behind.
absl::Status CheckReplaceable(const std::string& path);

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_FILES_H_
