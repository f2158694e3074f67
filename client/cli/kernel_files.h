// The files of a kernel, as `attune submit` sends them.
#ifndef ATTUNE_CLIENT_CLI_KERNEL_FILES_H_
#define ATTUNE_CLIENT_CLI_KERNEL_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "attune/v1/submission.pb.h"
#include "google/protobuf/repeated_field.h"

namespace attune::cli {

// Those of a folder and its folders, by path, without hidden ones; or the one file. NotFound when there is none,
// InvalidArgument when they are more than any server takes, so that a wrong folder is noticed before it is read.
absl::StatusOr<google::protobuf::RepeatedPtrField<v1::SourceFile>> ReadKernelFiles(const std::string& path);

// Writes them below `directory`, which is made; FailedPrecondition when one of them is there already.
absl::Status WriteKernelFiles(const google::protobuf::RepeatedPtrField<v1::SourceFile>& files,
                              const std::string& directory);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_KERNEL_FILES_H_
