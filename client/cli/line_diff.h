// What changed between two versions of a kernel's files, line by line.
#ifndef ATTUNE_CLIENT_CLI_LINE_DIFF_H_
#define ATTUNE_CLIENT_CLI_LINE_DIFF_H_

#include <cstddef>
#include <string>

#include "attune/v1/submission.pb.h"
#include "google/protobuf/repeated_field.h"

namespace attune::cli {

struct Diff {
  std::string text;  // unified, with three lines around each change; empty where nothing changed
  size_t added = 0;
  size_t removed = 0;
};

// Of all files, in the order of their paths; one that is in `before` or `after` alone is removed or added whole.
Diff DiffOf(const google::protobuf::RepeatedPtrField<v1::SourceFile>& before,
            const google::protobuf::RepeatedPtrField<v1::SourceFile>& after);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_LINE_DIFF_H_
