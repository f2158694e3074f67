// attune new-kernel: a small correct kernel to start from. Asks no server.
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/kernel_files.h"
#include "client/cli/starter_kernel.h"

namespace attune::cli {
namespace {

struct NewKernelArguments {
  std::string directory;
  std::string backend = "opencl";
};

absl::StatusOr<ExitCode> RunNewKernel(Session& session, const NewKernelArguments& arguments) {
  const auto files = StarterKernel(arguments.backend);
  if (absl::Status written = WriteKernelFiles(files, arguments.directory); !written.ok()) return written;
  if (session.json()) {
    Json json = {{"type", "new_kernel"}, {"directory", arguments.directory}, {"files", Json::array()}};
    for (const v1::SourceFile& file : files) json["files"].push_back(file.path());
    session.Emit(json);
    return ExitCode::kOk;
  }
  for (const v1::SourceFile& file : files) session.Print(absl::StrCat(arguments.directory, "/", file.path()));
  session.Note(absl::StrCat("To try it: attune submit ", arguments.directory, " --problem b1.h2.q128.d64.f16"));
  return ExitCode::kOk;
}

}  // namespace

Action AddNewKernel(CLI::App& app) {
  auto arguments = std::make_shared<NewKernelArguments>();
  app.add_option("directory", arguments->directory, "Where its files are written; it need not be there")->required();
  app.add_option("--backend", arguments->backend, "For which devices; default opencl")
      ->check(OneOf({"opencl", "cuda"}));
  return [arguments](Session& session) { return RunNewKernel(session, *arguments); };
}

}  // namespace attune::cli
