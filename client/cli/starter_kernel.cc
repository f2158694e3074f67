#include "client/cli/starter_kernel.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/starter_files.h"

namespace attune::cli {

const std::vector<StarterStep>& StarterSteps(absl::string_view backend) {
  static const std::vector<StarterStep> opencl = {{"plain", {"opencl"}}};
  static const std::vector<StarterStep> cuda = {
      {"plain", {"cuda_1_plain"}},
      {"parallelism", {"cuda_2_parallel"}},
      {"tensor cores", {"cuda_3_tensor_cores", "cuda_tiles"}},
      {"asynchronous copies", {"cuda_4_async_copies", "cuda_tiles"}},
  };
  return backend == "cuda" ? cuda : opencl;
}

google::protobuf::RepeatedPtrField<v1::SourceFile> FilesOf(const StarterStep& step) {
  google::protobuf::RepeatedPtrField<v1::SourceFile> files;
  for (const absl::string_view folder : step.folders) {
    for (const EmbeddedFile& embedded : EmbeddedFiles()) {
      absl::string_view name = embedded.name;
      if (!absl::ConsumePrefix(&name, absl::StrCat(folder, "/"))) continue;
      v1::SourceFile& file = *files.Add();
      file.set_path(std::string(name));
      file.set_text(std::string(embedded.bytes));
    }
  }
  return files;
}

}  // namespace attune::cli
