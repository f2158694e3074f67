// attune new-kernel: a small correct kernel to start from. Asks no server.
#include <memory>
#include <string>
#include <vector>

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
  int step = 1;
};

absl::StatusOr<ExitCode> RunNewKernel(Session& session, const NewKernelArguments& arguments) {
  const std::vector<StarterStep>& steps = StarterSteps(arguments.backend);
  const int last = static_cast<int>(steps.size());
  if (arguments.step < 1 || arguments.step > last) {
    return absl::InvalidArgumentError(
        last == 1 ? absl::StrCat("--step is ", arguments.step, "; allowed: 1 for ", arguments.backend,
                                 ". The steps beyond it are techniques of CUDA: --backend cuda")
                  : absl::StrCat("--step is ", arguments.step, "; allowed: 1 to ", last));
  }
  const StarterStep& step = steps[arguments.step - 1];
  const auto files = FilesOf(step);
  if (absl::Status written = WriteKernelFiles(files, arguments.directory); !written.ok()) return written;
  if (session.json()) {
    Json json = {{"type", "new_kernel"},
                 {"directory", arguments.directory},
                 {"step", arguments.step},
                 {"technique", std::string(step.technique)},
                 {"files", Json::array()}};
    for (const v1::SourceFile& file : files) json["files"].push_back(file.path());
    session.Emit(json);
    return ExitCode::kOk;
  }
  for (const v1::SourceFile& file : files) session.Print(absl::StrCat(arguments.directory, "/", file.path()));
  session.Note(absl::StrCat("To try it: attune submit ", arguments.directory, " --problem b1.h2.q128.d64.f16"));
  if (arguments.step < last) {
    session.Note(absl::StrCat("The next step, ", steps[arguments.step].technique, ", is --step ", arguments.step + 1));
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddNewKernel(CLI::App& app) {
  auto arguments = std::make_shared<NewKernelArguments>();
  app.add_option("directory", arguments->directory, "Where its files are written; it need not be there")->required();
  app.add_option("--backend", arguments->backend, "For which devices; default opencl")
      ->check(OneOf({"opencl", "cuda"}));
  app.add_option(
      "--step", arguments->step,
      "1, the default, is plain. Of CUDA each further one adds a technique to the one before: 2 parallelism, "
      "3 tensor cores, 4 asynchronous copies");
  return [arguments](Session& session) { return RunNewKernel(session, *arguments); };
}

}  // namespace attune::cli
