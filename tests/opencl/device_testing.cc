#include "tests/opencl/device_testing.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "server/device/opencl/opencl_backend.h"

namespace attune::testing {
namespace {

constexpr size_t kZone = 4096;        // bytes before and after the view
constexpr std::byte kZoneByte{0xff};  // NaN as f16, bf16 and f32

// A buffer with a red zone on each side of its view.
class Guarded {
 public:
  static absl::StatusOr<Guarded> Create(device::Device& device, size_t bytes, std::byte fill) {
    Guarded guarded;
    absl::StatusOr<std::unique_ptr<device::Buffer>> buffer = device.Allocate(bytes + 2 * kZone);
    if (!buffer.ok()) return buffer.status();
    guarded.buffer_ = *std::move(buffer);
    guarded.bytes_ = bytes;
    absl::Status status = device.Fill(*guarded.buffer_, 0, bytes + 2 * kZone, kZoneByte);
    if (status.ok()) status = device.Fill(*guarded.buffer_, kZone, bytes, fill);
    if (!status.ok()) return status;
    return guarded;
  }

  device::BufferView view() const { return {buffer_.get(), kZone, bytes_}; }

  absl::Status Upload(device::Device& device, const void* from) {
    return device.Upload(*buffer_, kZone, absl::MakeConstSpan(static_cast<const std::byte*>(from), bytes_));
  }

  absl::Status Fill(device::Device& device, std::byte fill) { return device.Fill(*buffer_, kZone, bytes_, fill); }

  // The view's bytes; `intact` becomes false when a zone was written to.
  absl::StatusOr<std::vector<std::byte>> Download(device::Device& device, bool& intact) const {
    std::vector<std::byte> all(bytes_ + 2 * kZone);
    if (absl::Status status = device.Download(*buffer_, 0, absl::MakeSpan(all)); !status.ok()) return status;
    const auto is_zone = [](std::byte byte) { return byte == kZoneByte; };
    intact = intact && std::all_of(all.begin(), all.begin() + kZone, is_zone) &&
             std::all_of(all.end() - kZone, all.end(), is_zone);
    return std::vector<std::byte>(all.begin() + kZone, all.end() - kZone);
  }

 private:
  std::unique_ptr<device::Buffer> buffer_;
  size_t bytes_ = 0;
};

template <typename T>
std::vector<T> As(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

absl::StatusOr<Guarded> Input(device::Device& device, const std::vector<uint16_t>& values) {
  absl::StatusOr<Guarded> guarded = Guarded::Create(device, values.size() * sizeof(uint16_t), std::byte{0});
  if (!guarded.ok()) return guarded;
  if (absl::Status status = guarded->Upload(device, values.data()); !status.ok()) return status;
  return guarded;
}

}  // namespace

std::unique_ptr<Host> OpenHost() {
  auto host = std::make_unique<Host>();
  host->backend = device::MakeOpenClBackend();
  if (!host->backend->Status().available()) return nullptr;
  absl::StatusOr<std::unique_ptr<device::Device>> device = host->backend->Open("opencl:0");
  absl::StatusOr<std::unique_ptr<device::Compiler>> compiler = host->backend->OpenCompiler();
  if (!device.ok() || !compiler.ok()) return nullptr;
  host->device = *std::move(device);
  host->compiler = *std::move(compiler);
  return host;
}

absl::StatusOr<worker::v1::CompileResponse> Compile(Host& host, const std::vector<std::string>& paths,
                                                    const std::vector<std::string>& options,
                                                    const std::vector<std::string>& entries) {
  worker::v1::CompileRequest request;
  request.set_backend(v1::BACKEND_OPENCL);
  request.set_target(host.device->info().target());
  for (const std::string& path : paths) {
    std::ifstream file(absl::StrCat(ATTUNE_SOURCE_DIR "/", path));
    if (!file) return absl::NotFoundError(path);
    std::stringstream text;
    text << file.rdbuf();
    worker::v1::SourceFile& source = *request.add_sources();
    // As #include names it: below the families' root.
    source.set_path(std::string(absl::StripPrefix(absl::StripPrefix(path, "kernels_src/"), "tests/families/")));
    source.set_text(text.str());
  }
  for (const std::string& option : options) request.add_options(option);
  for (const std::string& entry : entries) request.add_entries(entry);
  return host.compiler->Compile(request);
}

absl::StatusOr<Outputs> RunAttention(device::Device& device, const std::string& artifact,
                                     const v1::LaunchRecipe& recipe, const Problem& problem, const Tensors& tensors,
                                     const RunOptions& options) {
  absl::StatusOr<Guarded> q = Input(device, tensors.q), k = Input(device, tensors.k), v = Input(device, tensors.v);
  for (const auto* input : {&q, &k, &v}) {
    if (!input->ok()) return input->status();
  }
  absl::StatusOr<Guarded> o = Guarded::Create(device, tensors.q.size() * options.o_element_bytes, options.output);
  if (!o.ok()) return o.status();
  const size_t rows = tensors.q.size() / problem.head_dim;
  absl::StatusOr<Guarded> lse = Guarded::Create(device, rows * sizeof(float), kZoneByte);
  if (!lse.ok()) return lse.status();
  device::Bindings bindings;
  bindings.q = q->view();
  bindings.k = k->view();
  bindings.v = v->view();
  bindings.o = o->view();
  if (problem.lse) bindings.lse = lse->view();
  std::vector<Guarded> scratch;
  for (const v1::ScratchBuffer& needed : recipe.scratch()) {
    if (needed.bytes() == 0) {
      bindings.scratch.emplace_back();
      continue;
    }
    absl::StatusOr<Guarded> made =
        Guarded::Create(device, needed.bytes(), needed.zero_before_first_run() ? std::byte{0} : kZoneByte);
    if (!made.ok()) return made.status();
    bindings.scratch.push_back(made->view());
    scratch.push_back(*std::move(made));
  }

  absl::StatusOr<std::unique_ptr<device::Module>> module =
      device.Load(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(artifact.data()), artifact.size()));
  if (!module.ok()) return module.status();
  absl::StatusOr<std::unique_ptr<device::Runnable>> runnable = device.Bind(**module, recipe, bindings);
  if (!runnable.ok()) return runnable.status();
  for (int i = 0; i < options.runs; ++i) {
    if (options.fresh_output) {
      if (absl::Status status = o->Fill(device, options.output); !status.ok()) return status;
    }
    if (absl::Status status = (*runnable)->Run(); !status.ok()) return status;
  }

  Outputs outputs;
  outputs.red_zones_intact = true;
  outputs.inputs_unchanged = true;
  const std::pair<const Guarded*, const std::vector<uint16_t>*> inputs[] = {
      {&*q, &tensors.q}, {&*k, &tensors.k}, {&*v, &tensors.v}};
  for (const auto& [guarded, values] : inputs) {
    absl::StatusOr<std::vector<std::byte>> bytes = guarded->Download(device, outputs.red_zones_intact);
    if (!bytes.ok()) return bytes.status();
    outputs.inputs_unchanged = outputs.inputs_unchanged && As<uint16_t>(*bytes) == *values;
  }
  for (const Guarded& guarded : scratch) {
    absl::StatusOr<std::vector<std::byte>> bytes = guarded.Download(device, outputs.red_zones_intact);
    if (!bytes.ok()) return bytes.status();
  }
  absl::StatusOr<std::vector<std::byte>> o_bytes = o->Download(device, outputs.red_zones_intact);
  if (!o_bytes.ok()) return o_bytes.status();
  absl::StatusOr<std::vector<std::byte>> lse_bytes = lse->Download(device, outputs.red_zones_intact);
  if (!lse_bytes.ok()) return lse_bytes.status();
  outputs.o = As<uint16_t>(*o_bytes);
  outputs.o_f32 = As<float>(*o_bytes);
  outputs.lse = As<float>(*lse_bytes);
  return outputs;
}

}  // namespace attune::testing
