#include "server/worker/compile_session.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::worker {

worker::v1::Response CompileSession::Handle(const worker::v1::Request& request) {
  worker::v1::Response response;
  switch (request.kind_case()) {
    case worker::v1::Request::kDescribe:
      // Drivers and compilers are opened by the first compile that needs them.
      response.mutable_describe();
      return response;
    case worker::v1::Request::kCompile: {
      absl::StatusOr<worker::v1::CompileResponse> compiled = Compile(request.compile());
      if (!compiled.ok()) return ErrorResponse(compiled.status());
      *response.mutable_compile() = *std::move(compiled);
      return response;
    }
    default:
      return NotServed(request, "compile");
  }
}

absl::StatusOr<worker::v1::CompileResponse> CompileSession::Compile(const worker::v1::CompileRequest& request) {
  if (request.sources().empty()) return absl::InvalidArgumentError("compile: sources is empty; it needs at least one");
  absl::StatusOr<device::Compiler*> compiler = CompilerOf(request.backend());
  if (!compiler.ok()) return compiler.status();
  return (*compiler)->Compile(request);
}

absl::StatusOr<device::Compiler*> CompileSession::CompilerOf(attune::v1::Backend backend) {
  const auto open = compilers_.find(backend);
  if (open != compilers_.end()) return open->second.get();
  for (const std::unique_ptr<device::Backend>& candidate : backends_) {
    if (candidate->Status().backend() != backend) continue;
    absl::StatusOr<std::unique_ptr<device::Compiler>> compiler = candidate->OpenCompiler();
    if (!compiler.ok()) return compiler.status();
    return (compilers_[backend] = *std::move(compiler)).get();
  }
  return absl::UnavailableError(
      absl::StrCat("compile: backend is ", attune::v1::Backend_Name(backend), ", not of this build"));
}

worker::v1::Response ProbeSession::Handle(const worker::v1::Request& request) {
  if (request.kind_case() != worker::v1::Request::kDescribe) return NotServed(request, "probe");
  worker::v1::Response response;
  for (const std::unique_ptr<device::Backend>& backend : backends_) {
    attune::v1::BackendStatus* status = response.mutable_describe()->add_backends();
    *status = backend->Status();
    // A host without a GPU may compile all the same.
    if (absl::StatusOr<std::unique_ptr<device::Compiler>> compiler = backend->OpenCompiler(); compiler.ok()) {
      status->set_compiler((*compiler)->toolchain());
    } else if (status->reason().empty()) {
      status->set_reason(std::string(compiler.status().message()));
    }
    for (const attune::v1::Device& device : backend->Devices()) *response.mutable_describe()->add_devices() = device;
  }
  return response;
}

}  // namespace attune::worker
