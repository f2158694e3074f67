// A small correct kernel with its manifest, to begin with: slow, and every part of it explained.
#ifndef ATTUNE_CLIENT_CLI_STARTER_KERNEL_H_
#define ATTUNE_CLIENT_CLI_STARTER_KERNEL_H_

#include "absl/strings/string_view.h"
#include "attune/v1/submission.pb.h"
#include "google/protobuf/repeated_field.h"

namespace attune::cli {

// `backend` is "opencl" or "cuda".
google::protobuf::RepeatedPtrField<v1::SourceFile> StarterKernel(absl::string_view backend);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_STARTER_KERNEL_H_
