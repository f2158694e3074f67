// Makes one text of a compile request's sources, because OpenCL compilers take includes from disk alone and a compile
// worker is to touch none.
#ifndef ATTUNE_SERVER_DEVICE_OPENCL_SOURCE_INLINER_H_
#define ATTUNE_SERVER_DEVICE_OPENCL_SOURCE_INLINER_H_

#include <string>

#include "absl/status/statusor.h"
#include "attune/worker/v1/worker.pb.h"
#include "google/protobuf/repeated_field.h"

namespace attune::device::opencl {

// The first source with each quoted #include that names one of the others replaced by its text, as the preprocessor
// would, with #line markers so that the compiler's messages name the right file. A name is looked for beside the
// including file first, then as it stands; one that is not found is left for the compiler to complain about.
// InvalidArgument when there is no source or files include one another in a circle.
absl::StatusOr<std::string> InlineIncludes(const google::protobuf::RepeatedPtrField<worker::v1::SourceFile>& sources);

}  // namespace attune::device::opencl

#endif  // ATTUNE_SERVER_DEVICE_OPENCL_SOURCE_INLINER_H_
