#include "server/trials/code.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/problem.h"
#include "server/base/proto_time.h"
#include "server/base/sha256.h"
#include "server/catalog/code_rejection.h"
#include "server/trials/store_wait.h"

namespace attune::trials {

worker::v1::CompileRequest MakeCompileRequest(const space::Family& family, const space::CompileSpec& spec,
                                              const v1::Device& device) {
  worker::v1::CompileRequest request;
  request.set_backend(device.backend());
  request.set_target(device.target());
  for (const auto& [path, text] : family.sources) {
    worker::v1::SourceFile* file = request.add_sources();
    file->set_path(path);
    file->set_text(text);
  }
  *request.mutable_options() = {spec.options.begin(), spec.options.end()};
  *request.mutable_entries() = {spec.entries.begin(), spec.entries.end()};
  return request;
}

absl::StatusOr<CodePtr> FindCode(store::Store& store, absl::string_view compile_key, absl::string_view toolchain) {
  absl::StatusOr<store::CompiledArtifact> report = store.FindArtifact(compile_key, toolchain);
  if (!report.ok()) return report.status();
  auto code = std::make_shared<Code>();
  code->report = *std::move(report);
  code->cached = true;
  if (code->report.verdict == v1::VERDICT_OK) {
    absl::StatusOr<std::string> artifact = store.ReadArtifact(code->report.sha256);
    if (absl::IsDataLoss(artifact.status())) return absl::NotFoundError(artifact.status().message());
    if (!artifact.ok()) return artifact.status();
    code->artifact = *std::move(artifact);
  }
  return code;
}

namespace {

std::shared_ptr<Code> MakeCode(absl::string_view compile_key, absl::string_view toolchain,
                               worker::v1::CompileResponse response) {
  auto code = std::make_shared<Code>();
  code->report.compile_key = std::string(compile_key);
  code->report.toolchain = std::string(toolchain);
  code->report.verdict = response.verdict();
  code->report.log = response.log();
  code->report.entries = {response.entries().begin(), response.entries().end()};
  code->report.compile_ms = response.compile_ms();
  code->compile_begin = TimeOf(response.begin());
  code->compile_worker = response.worker();
  if (response.verdict() == v1::VERDICT_OK) {
    code->artifact = std::move(*response.mutable_artifact());
    code->report.sha256 = Sha256(code->artifact);
  }
  return code;
}

}  // namespace

absl::StatusOr<CodePtr> KeepCode(store::Store& store, absl::string_view compile_key, absl::string_view toolchain,
                                 worker::v1::CompileResponse response) {
  const std::shared_ptr<Code> code = MakeCode(compile_key, toolchain, std::move(response));
  if (absl::Status stored = store.PutArtifact(code->report, code->artifact); !stored.ok()) return stored;
  return code;
}

absl::StatusOr<CodePtr> KeepCode(store::Store& store, absl::string_view compile_key, absl::string_view toolchain,
                                 worker::v1::CompileResponse response, const Job& job) {
  const std::shared_ptr<Code> code = MakeCode(compile_key, toolchain, std::move(response));
  absl::Status stored =
      WaitForStore(job.name, job.stop, job.progress, [&] { return store.PutArtifact(code->report, code->artifact); });
  if (!stored.ok()) return stored;
  return code;
}

namespace {

// One compile that its caller waits for. Shared with the pool's callback, which may come after the caller has left.
struct Waiting {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::optional<absl::StatusOr<worker::v1::CompileResponse>> response;
};

}  // namespace

absl::StatusOr<CodePtr> CodeSource::Get(const space::Family& family, const space::CompileSpec& spec,
                                        const catalog::TuningKey& tuning_key, const Job& job) const {
  absl::StatusOr<CodePtr> code = ReadFor(job, [&] { return FindCode(store_, spec.key, tuning_key.toolchain); });
  if (!code.ok() && !absl::IsNotFound(code.status())) return code.status();
  // What everything else depends on is worth a second compile: a time-out on a busy host must not bar it for good.
  if (!code.ok() || (*code)->report.verdict != v1::VERDICT_OK) {
    auto waiting = std::make_shared<Waiting>();
    pool_.Submit(MakeCompileRequest(family, spec, tuning_key.device), CompilePriority(job.priority, /*awaited=*/true),
                 [waiting](absl::StatusOr<worker::v1::CompileResponse> response) {
                   std::lock_guard<std::mutex> lock(waiting->mutex);
                   waiting->response = std::move(response);
                   waiting->changed.notify_all();
                 });
    std::unique_lock<std::mutex> lock(waiting->mutex);
    if (!waiting->changed.wait(lock, job.stop, [&] { return waiting->response.has_value(); })) {
      return absl::CancelledError("stopped while compiling");
    }
    if (!waiting->response->ok()) return waiting->response->status();
    code = KeepCode(store_, spec.key, tuning_key.toolchain, **std::move(waiting->response), job);
    if (!code.ok()) return code.status();
  }
  if ((*code)->report.verdict != v1::VERDICT_OK) {
    return absl::FailedPreconditionError(absl::StrCat("kernel family ", family.name(), " does not compile for ",
                                                      tuning_key.device.id(), ": ", Word((*code)->report.verdict), ": ",
                                                      catalog::GistOf((*code)->report.log)));
  }
  return code;
}

}  // namespace attune::trials
