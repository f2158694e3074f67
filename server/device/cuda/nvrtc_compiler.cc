#include "server/device/cuda/nvrtc_compiler.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/device/cuda/resource_report.h"

namespace attune::device::cuda {
namespace {

using worker::v1::CompileRequest;
using worker::v1::CompileResponse;

constexpr absl::string_view kVirtual = "compute_";
constexpr absl::string_view kReal = "sm_";

// An nvrtcProgram of a request's sources.
class Program {
 public:
  static absl::StatusOr<Program> Create(const NvrtcApi& nvrtc, const CompileRequest& request) {
    std::vector<const char*> headers, names;
    for (int i = 1; i < request.sources_size(); ++i) {
      headers.push_back(request.sources(i).text().c_str());
      names.push_back(request.sources(i).path().c_str());
    }
    NvrtcProgram program = nullptr;
    const NvrtcResult result =
        nvrtc.CreateProgram(&program, request.sources(0).text().c_str(), request.sources(0).path().c_str(),
                            static_cast<int>(headers.size()), headers.data(), names.data());
    if (result != kNvrtcSuccess) return absl::InternalError(nvrtc.Error("nvrtcCreateProgram", result));
    return Program(nvrtc, program);
  }

  NvrtcResult Compile(const std::vector<std::string>& options) const {
    std::vector<const char*> pointers;
    pointers.reserve(options.size());
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return nvrtc_->CompileProgram(program_.get(), static_cast<int>(pointers.size()), pointers.data());
  }

  absl::StatusOr<std::string> Log() const {
    absl::StatusOr<std::string> log = Read("nvrtcGetProgramLog", nvrtc_->GetProgramLogSize, nvrtc_->GetProgramLog);
    if (log.ok()) absl::StripTrailingAsciiWhitespace(DropTerminator(&*log));
    return log;
  }
  absl::StatusOr<std::string> Cubin() const { return Read("nvrtcGetCUBIN", nvrtc_->GetCUBINSize, nvrtc_->GetCUBIN); }
  absl::StatusOr<std::string> Ptx() const {
    absl::StatusOr<std::string> ptx = Read("nvrtcGetPTX", nvrtc_->GetPTXSize, nvrtc_->GetPTX);
    if (ptx.ok()) DropTerminator(&*ptx);
    return ptx;
  }

 private:
  struct Destroy {
    const NvrtcApi* nvrtc;
    void operator()(NvrtcProgram program) const { nvrtc->DestroyProgram(&program); }
  };

  Program(const NvrtcApi& nvrtc, NvrtcProgram program) : nvrtc_(&nvrtc), program_(program, Destroy{&nvrtc}) {}

  absl::StatusOr<std::string> Read(const char* call, NvrtcResult (*size)(NvrtcProgram, size_t*),
                                   NvrtcResult (*get)(NvrtcProgram, char*)) const {
    size_t bytes = 0;
    NvrtcResult result = size(program_.get(), &bytes);
    std::string text(bytes, '\0');
    if (result == kNvrtcSuccess && bytes > 0) result = get(program_.get(), text.data());
    if (result != kNvrtcSuccess) return absl::InternalError(nvrtc_->Error(call, result));
    return text;
  }

  static std::string* DropTerminator(std::string* text) {
    if (!text->empty() && text->back() == '\0') text->pop_back();
    return text;
  }

  const NvrtcApi* nvrtc_;
  std::unique_ptr<void, Destroy> program_;
};

bool IsPtx(const CompileRequest& request) { return absl::StartsWith(request.target(), kVirtual); }

// "89" of "sm_89" or "compute_89"; "90a" of "sm_90a".
std::string Architecture(const std::string& target) {
  absl::string_view name = target;
  if (!absl::ConsumePrefix(&name, kVirtual)) absl::ConsumePrefix(&name, kReal);
  return std::string(name);
}

std::vector<std::string> Options(const CompileRequest& request, const std::vector<std::string>& includes) {
  std::vector<std::string> options(request.options().begin(), request.options().end());
  options.push_back(absl::StrCat("--gpu-architecture=", kReal, Architecture(request.target())));
  options.insert(options.end(), {"--std=c++17", "--device-as-default-execution-space", "--ptxas-options=-v"});
  for (const std::string& include : includes) options.push_back(absl::StrCat("--include-path=", include));
  return options;
}

// Fills in the resources of the entries asked for, of all when none is; false when one of them is not there.
bool ReportEntries(const CompileRequest& request, CompileResponse* response) {
  const std::vector<CompileResponse::Entry> found = ParseResourceReport(response->log());
  if (request.entries().empty()) response->mutable_entries()->Add(found.begin(), found.end());
  for (const std::string& name : request.entries()) {
    const auto entry = std::find_if(found.begin(), found.end(), [&](const auto& e) { return e.name() == name; });
    if (entry == found.end()) {
      response->set_log(absl::StrCat(request.sources(0).path(), ": error: no extern \"C\" __global__ function \"", name,
                                     "\"\n", response->log()));
      return false;
    }
    *response->add_entries() = *entry;
  }
  return true;
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(std::shared_ptr<const NvrtcApi> nvrtc, std::vector<std::string> includes)
    : nvrtc_(std::move(nvrtc)), includes_(std::move(includes)) {}

std::string NvrtcCompiler::toolchain() const { return absl::StrCat("nvrtc ", nvrtc_->major(), ".", nvrtc_->minor()); }

absl::Status NvrtcCompiler::CheckTarget(const std::string& target) const {
  const std::string architecture = Architecture(target);
  int number = 0;
  const absl::string_view digits = absl::StripSuffix(absl::StripSuffix(architecture, "a"), "f");
  if (architecture == target || !absl::SimpleAtoi(digits, &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("target is \"", target, "\"; it must be like \"sm_89\" or \"compute_89\""));
  }
  int count = 0;
  if (NvrtcResult result = nvrtc_->GetNumSupportedArchs(&count); result != kNvrtcSuccess) {
    return absl::InternalError(nvrtc_->Error("nvrtcGetNumSupportedArchs", result));
  }
  std::vector<int> supported(static_cast<size_t>(count));
  if (NvrtcResult result = nvrtc_->GetSupportedArchs(supported.data()); result != kNvrtcSuccess) {
    return absl::InternalError(nvrtc_->Error("nvrtcGetSupportedArchs", result));
  }
  if (std::find(supported.begin(), supported.end(), number) == supported.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(toolchain(), " does not compile for ", target, "; it knows ", absl::StrJoin(supported, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<CompileResponse> NvrtcCompiler::Compile(const CompileRequest& request) {
  if (request.sources().empty()) return absl::InvalidArgumentError("sources is empty; the first is what is compiled");
  if (absl::Status status = CheckTarget(request.target()); !status.ok()) return status;
  const absl::Time start = absl::Now();
  absl::StatusOr<Program> program = Program::Create(*nvrtc_, request);
  if (!program.ok()) return program.status();
  const NvrtcResult result = program->Compile(Options(request, includes_));
  absl::StatusOr<std::string> log = program->Log();
  if (!log.ok()) return log.status();

  CompileResponse response;
  response.set_toolchain(toolchain());
  response.set_log(*std::move(log));
  response.set_compile_ms(absl::ToDoubleMilliseconds(absl::Now() - start));
  // A wrong option is the family's mistake, as a wrong source is.
  if (result == kNvrtcCompilation || result == kNvrtcInvalidOption) {
    response.set_verdict(v1::VERDICT_COMPILE_ERROR);
    return response;
  }
  if (result != kNvrtcSuccess) {
    return absl::InternalError(absl::StrCat(nvrtc_->Error("nvrtcCompileProgram", result), "\n", response.log()));
  }
  if (!ReportEntries(request, &response)) {
    response.set_verdict(v1::VERDICT_COMPILE_ERROR);
    return response;
  }
  absl::StatusOr<std::string> artifact = IsPtx(request) ? program->Ptx() : program->Cubin();
  if (!artifact.ok()) return artifact.status();
  response.set_artifact(*std::move(artifact));
  response.set_verdict(v1::VERDICT_OK);
  return response;
}

}  // namespace attune::device::cuda
