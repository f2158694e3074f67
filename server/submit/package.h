// A submission's files as a kernel family: checked, named by their content, and loaded as one of kernels_src/ is.
#ifndef ATTUNE_SERVER_SUBMIT_PACKAGE_H_
#define ATTUNE_SERVER_SUBMIT_PACKAGE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/submission.pb.h"
#include "google/protobuf/repeated_field.h"
#include "server/space/family.h"

namespace attune::submit {

using Files = google::protobuf::RepeatedPtrField<v1::SourceFile>;

struct Package {
  std::string content_hash;                  // SHA-256, hexadecimal, whatever the order of the files
  family::v1::KernelFamily manifest;         // its name is the prefix and the hash's beginning
  std::map<std::string, std::string> files;  // by path, without the manifest
};

// InvalidArgument with every mistake, which names file and line, or the limit that was hit.
absl::StatusOr<Package> ReadPackage(const Files& files);

// The family. What its sources include from kernels_src/'s libraries comes from below `library`.
absl::StatusOr<std::shared_ptr<const space::Family>> FamilyOf(const Package& package, const std::string& library);
absl::StatusOr<std::shared_ptr<const space::Family>> FamilyOf(const Files& files, const std::string& library);

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_PACKAGE_H_
