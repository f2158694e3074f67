// attune submit: a kernel of one's own against what is served, or against the one before.
#include <chrono>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/follow.h"
#include "client/cli/kernel_files.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct SubmitArguments {
  std::string path;
  std::vector<std::string> problems;
  std::string hypothesis;
  std::string base;
  std::string loop;
  std::optional<int> sanitize_every;
  bool watch = false;
  bool detach = false;
};

using Files = google::protobuf::RepeatedPtrField<v1::SourceFile>;

std::string BytesOf(const Files& files) {
  v1::SubmitRequest all;
  *all.mutable_files() = files;
  return all.SerializeAsString();
}

// Blocks until the files differ from `last`. What cannot be read for a moment, as while an editor writes it, is read
// again.
Files AwaitChange(const std::string& path, const std::string& last) {
  while (true) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    absl::StatusOr<Files> files = ReadKernelFiles(path);
    if (files.ok() && BytesOf(*files) != last) return *std::move(files);
  }
}

absl::StatusOr<v1::SubmitRequest> RequestOf(Session& session, const SubmitArguments& arguments) {
  v1::SubmitRequest request;
  for (const std::string& text : arguments.problems) {
    const auto problem = ParseProblem(text);
    if (!problem.ok()) return problem.status();
    *request.add_problems() = attune::ToProto(*problem);
  }
  request.set_device_id(session.options().device);
  request.set_policy(session.policy());
  request.set_hypothesis(arguments.hypothesis);
  request.set_base(arguments.base == "incumbent" || arguments.base == "previous" || arguments.base.empty()
                       ? arguments.base
                       : ResourceName("submissions", arguments.base));
  request.set_loop(arguments.loop);
  if (arguments.sanitize_every.has_value()) request.set_sanitize_every(*arguments.sanitize_every);
  return request;
}

absl::StatusOr<ExitCode> RunSubmit(Session& session, const SubmitArguments& arguments) {
  absl::StatusOr<v1::SubmitRequest> request = RequestOf(session, arguments);
  if (!request.ok()) return request.status();
  absl::StatusOr<Files> files = ReadKernelFiles(arguments.path);
  if (!files.ok()) return files.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  while (true) {
    *request->mutable_files() = *files;
    const absl::StatusOr<ExitCode> code = FollowUnless(arguments.detach, session, (*client)->Submit(*request));
    if (!arguments.watch || (code.ok() && *code == ExitCode::kInterrupted)) return code;
    if (!code.ok()) session.Note(absl::StrCat("attune: ", OneLine(code.status().message())));
    session.Note(absl::StrCat("waiting for a change of ", arguments.path, "; Ctrl-C ends"));
    files = AwaitChange(arguments.path, BytesOf(*files));
  }
}

}  // namespace

Action AddSubmit(CLI::App& app) {
  auto arguments = std::make_shared<SubmitArguments>();
  app.add_option("path", arguments->path,
                 "A folder with family.textproto and its sources, or one .cl or .cu file with its manifest in the "
                 "comment at its head")
      ->required();
  AddRepeatable(app, "--problem", &arguments->problems, "What it is tried for, as b2.h8.q512.d64.f16")->required();
  app.add_option("--hypothesis", arguments->hypothesis, "What is tried, and why; kept with it");
  app.add_option("--base", arguments->base,
                 "What it is compared with: incumbent (default), previous (the last of the loop that was kept), or a "
                 "submission, submissions/7");
  app.add_option("--loop", arguments->loop, "The loop that it is an iteration of; attune summary --loop shows it");
  app.add_option("--sanitize-every", arguments->sanitize_every,
                 "Run compute-sanitizer on every so many iterations of the loop; default 5, 0: never")
      ->check(CLI::Range(0, 1000));
  app.add_flag("--watch", arguments->watch, "Submit again whenever a file changes, until Ctrl-C");
  app.add_flag("--detach", arguments->detach, "Print the operation's name and do not wait for it");
  return [arguments](Session& session) { return RunSubmit(session, *arguments); };
}

}  // namespace attune::cli
