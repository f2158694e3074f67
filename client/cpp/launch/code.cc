#include "client/cpp/launch/code.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/sha256.h"

namespace attune::launch {
namespace {

using cuda::kSuccess;

constexpr absl::string_view kElf =
    "\x7f"
    "ELF";                         // a cubin
constexpr size_t kPtxHead = 4096;  // bytes within which PTX has its .version

absl::Status CheckArtifact(const v1::GetBestResponse& answer) {
  const absl::string_view artifact = answer.artifact();
  if (absl::StartsWith(answer.device_id(), "opencl")) {
    return absl::InvalidArgumentError(
        absl::StrCat("answer: device_id is '", answer.device_id(), "'; only CUDA's artifacts can be launched"));
  }
  if (artifact.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("answer: artifact is missing (artifact_sha256 is '",
                                                   answer.artifact_sha256(), "'); ask for it: include_artifact"));
  }
  if (const std::string found = Sha256(artifact); found != answer.artifact_sha256()) {
    return absl::DataLossError(
        absl::StrCat("answer: the artifact's SHA-256 is ", found, "; artifact_sha256 is ", answer.artifact_sha256()));
  }
  if (!absl::StartsWith(artifact, kElf) && !absl::StrContains(artifact.substr(0, kPtxHead), ".version")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "answer: artifact begins with '", absl::CHexEscape(artifact.substr(0, 8)), "'; it must be a cubin or PTX"));
  }
  return absl::OkStatus();
}

}  // namespace

bool Code::Has(absl::string_view sha256) const {
  const std::lock_guard lock(mutex_);
  return modules_.contains(sha256);
}

absl::StatusOr<PlanPtr> Code::PlanOf(const AnswerPtr& answer, const Problem& problem) {
  const std::lock_guard lock(mutex_);
  const CurrentContext context(*gpu_);
  if (!context.status().ok()) return context.status();
  const RelaxedCapture relaxed(*gpu_);
  const absl::StatusOr<cuda::ModuleHandle> module = Load(*answer);
  if (!module.ok()) return module.status();
  const absl::StatusOr<std::vector<void*>> functions = Functions(*module, answer->recipe());
  if (!functions.ok()) return functions.status();
  return Plan::Make(gpu_, answer, problem, *functions);
}

absl::StatusOr<cuda::ModuleHandle> Code::Load(const v1::GetBestResponse& answer) {
  if (const auto it = modules_.find(answer.artifact_sha256()); it != modules_.end()) return it->second;
  if (absl::Status status = CheckArtifact(answer); !status.ok()) return status;
  cuda::ModuleHandle module = nullptr;
  // PTX must end in a zero byte, as a std::string does; a cubin knows its length.
  const cuda::Result result = gpu_->driver().ModuleLoadDataEx(&module, answer.artifact().c_str(), 0, nullptr, nullptr);
  if (result != kSuccess) {
    const absl::Status error = gpu_->driver().Error("cuModuleLoadDataEx", result);
    return absl::Status(error.code(), absl::StrCat(error.message(), " (", answer.variant().text(), " for ",
                                                   answer.device_id(), " on ", gpu_->info().model(), ")"));
  }
  modules_.emplace(answer.artifact_sha256(), module);
  return module;
}

absl::StatusOr<std::vector<void*>> Code::Functions(cuda::ModuleHandle module, const v1::LaunchRecipe& recipe) const {
  std::vector<void*> functions;
  for (const v1::KernelLaunch& launch : recipe.launches()) {
    cuda::FunctionHandle function = nullptr;
    const cuda::Result result = gpu_->driver().ModuleGetFunction(&function, module, launch.entry().c_str());
    if (result == cuda::kNotFound) {
      return absl::InvalidArgumentError(
          absl::StrCat("recipe: entry is '", launch.entry(), "'; the artifact has no such kernel"));
    }
    if (result != kSuccess) return gpu_->driver().Error("cuModuleGetFunction", result);
    // Otherwise at its first launch, which may be a captured one.
    if (gpu_->api().FuncLoad != nullptr) {
      if (const cuda::Result loaded = gpu_->api().FuncLoad(function); loaded != kSuccess) {
        return gpu_->driver().Error("cuFuncLoad", loaded);
      }
    }
    functions.push_back(function);
  }
  return functions;
}

}  // namespace attune::launch
