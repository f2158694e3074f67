// Launches a problem's kernel on tensors that are files, and writes what it computes to files:
//
//   launch_files --snapshot=FILE --problem=b1.h8.q128.d64.f16.lse --in=FOLDER --out=FOLDER
//
// FOLDER of --in holds Q.bin, K.bin, V.bin and, where the problem has them, SINKS.bin, Q_BOUNDS.bin, KV_BOUNDS.bin,
// KV_LENGTHS.bin, PAGE_TABLE.bin, K_SCALE.bin, V_SCALE.bin: the bytes of each tensor. --out gets O.WAY.bin and, with
// .lse, LSE.WAY.bin for each way to launch: run, graph (captured once, replayed twice), plan.
//
// Prints one JSON object: the variant, and what each way costs the host.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "client/cpp/examples/device_memory.h"
#include "client/cpp/files.h"
#include "client/cpp/launch/runtime.h"

ABSL_FLAG(std::string, server, "", "host:port or unix:/path of the attune server");
ABSL_FLAG(std::string, snapshot, "", "a file of `attune export`, in place of a server or for when there is none");
ABSL_FLAG(int, device, 0, "the GPU");
ABSL_FLAG(std::string, problem, "", "which kernel to launch");
ABSL_FLAG(std::string, in, "", "folder of the tensors");
ABSL_FLAG(std::string, out, "", "folder of the results");
ABSL_FLAG(int, warm_seconds, 120, "how long to wait for the kernel");

namespace attune::examples {
namespace {

using launch::Address;
using launch::Tensors;

constexpr unsigned char kPoison = 0xff;  // NaN

struct Input {
  const char* file;
  Address Tensors::*tensor;
};
constexpr Input kInputs[] = {{"Q", &Tensors::q},
                             {"K", &Tensors::k},
                             {"V", &Tensors::v},
                             {"SINKS", &Tensors::sinks},
                             {"Q_BOUNDS", &Tensors::cu_seqlens_q},
                             {"KV_BOUNDS", &Tensors::cu_seqlens_k},
                             {"KV_LENGTHS", &Tensors::seqused_k},
                             {"PAGE_TABLE", &Tensors::block_table},
                             {"K_SCALE", &Tensors::k_scale},
                             {"V_SCALE", &Tensors::v_scale}};

struct Output {
  std::string name;
  Address address;
  size_t bytes;
};

class Files {
 public:
  Files(const Problem& problem, Gpu& gpu) : problem_(problem), gpu_(gpu) {}

  // Brings the inputs to the GPU and makes room for the outputs.
  absl::Status Read(const std::string& folder) {
    size_t q_bytes = 0;
    for (const Input& input : kInputs) {
      const absl::StatusOr<std::string> bytes = ReadFile(absl::StrCat(folder, "/", input.file, ".bin"));
      if (absl::IsNotFound(bytes.status())) continue;  // the launch names one that is missing
      if (!bytes.ok()) return bytes.status();
      const absl::StatusOr<Address> address = gpu_.Allocate(bytes->size());
      if (!address.ok()) return address.status();
      tensors.*input.tensor = *address;
      if (absl::Status status = gpu_.Upload(*address, bytes->data(), bytes->size()); !status.ok()) return status;
      if (input.tensor == &Tensors::q) q_bytes = bytes->size();
    }
    if (absl::Status status = AddOutput("O", q_bytes, &Tensors::o); !status.ok() || !problem_.lse) return status;
    const auto row_bytes = static_cast<size_t>(problem_.head_dim * DTypeBytes(problem_.dtype));
    return AddOutput("LSE", q_bytes / row_bytes * sizeof(float), &Tensors::lse);
  }

  // Writes what `launch` computes over NaN.
  absl::Status Write(const std::string& folder, const std::string& way, const std::function<absl::Status()>& launch) {
    for (const Output& output : outputs_) {
      if (absl::Status status = gpu_.Fill(output.address, kPoison, output.bytes); !status.ok()) return status;
    }
    if (absl::Status status = launch(); !status.ok()) return status;
    for (const Output& output : outputs_) {
      std::string bytes(output.bytes, '\0');
      absl::Status status = gpu_.Download(bytes.data(), output.address, bytes.size());
      if (status.ok()) status = ReplaceFile(absl::StrCat(folder, "/", output.name, ".", way, ".bin"), bytes);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  Tensors tensors;

 private:
  absl::Status AddOutput(const std::string& name, size_t bytes, Address Tensors::*tensor) {
    const absl::StatusOr<Address> address = gpu_.Allocate(bytes);
    if (!address.ok()) return address.status();
    tensors.*tensor = *address;
    outputs_.push_back({name, *address, bytes});
    return absl::OkStatus();
  }

  const Problem problem_;
  Gpu& gpu_;
  std::vector<Output> outputs_;
};

absl::StatusOr<std::string> Launch(const Problem& problem, Gpu& gpu, launch::Attention& attention) {
  const launch::Shape shape = {.batch = problem.batch, .seq_q = problem.seq_q, .seq_kv = problem.seq_kv};
  const absl::Duration wait = absl::Seconds(absl::GetFlag(FLAGS_warm_seconds));
  if (absl::Status status = attention.Warm(absl::MakeConstSpan(&shape, 1), wait); !status.ok()) return status;
  Files files(problem, gpu);
  if (absl::Status status = files.Read(absl::GetFlag(FLAGS_in)); !status.ok()) return status;
  const absl::StatusOr<launch::PlanPtr> plan = attention.Find(shape);
  if (!plan.ok()) return plan.status();
  const absl::StatusOr<Address> scratch = gpu.Allocate((*plan)->scratch_bytes());
  if (!scratch.ok()) return scratch.status();
  if ((*plan)->zeroed_bytes() > 0) {
    if (absl::Status status = gpu.Fill(*scratch, 0, (*plan)->zeroed_bytes()); !status.ok()) return status;
  }
  const auto run = [&] { return attention.Run(gpu.stream(), files.tensors, shape); };
  const absl::StatusOr<device::cuda::GraphExec> graph = gpu.Capture(run);
  if (!graph.ok()) return graph.status();
  const std::pair<std::string, std::function<absl::Status()>> ways[] = {
      {"run", run},
      {"graph", [&] { return gpu.Replay(*graph); }},
      {"plan", [&] { return (*plan)->Enqueue(files.tensors, gpu.stream(), *scratch); }}};
  std::string report = absl::StrFormat(
      "{\"problem\": \"%s\", \"variant\": \"%s\", \"launches\": %d, \"scratch_bytes\": %d", ToText(problem),
      (*plan)->answer().variant().text(), (*plan)->launches(), (*plan)->scratch_bytes());
  for (const auto& [way, launch] : ways) {
    if (absl::Status status = launch(); !status.ok()) return status;  // what it leaves behind must harm no later run
    if (absl::Status status = files.Write(absl::GetFlag(FLAGS_out), way, launch); !status.ok()) return status;
    const absl::StatusOr<HostTime> time = TimeOnHost(gpu, launch);
    if (!time.ok()) return time.status();
    absl::StrAppendFormat(&report, ", \"%s\": {\"median_us\": %.3f, \"p10_us\": %.3f, \"p90_us\": %.3f}", way,
                          time->median_us, time->p10_us, time->p90_us);
  }
  return report + "}";
}

absl::StatusOr<std::string> Main() {
  const absl::StatusOr<Problem> problem = ParseProblem(absl::GetFlag(FLAGS_problem));
  if (!problem.ok()) return problem.status();
  absl::StatusOr<std::unique_ptr<Gpu>> gpu = Gpu::Open(absl::GetFlag(FLAGS_device));
  if (!gpu.ok()) return gpu.status();
  absl::StatusOr<std::unique_ptr<launch::Runtime>> runtime =
      launch::Runtime::Open({.server = absl::GetFlag(FLAGS_server),
                             .snapshot = absl::GetFlag(FLAGS_snapshot),
                             .device = absl::GetFlag(FLAGS_device)});
  if (!runtime.ok()) return runtime.status();
  const absl::StatusOr<std::unique_ptr<launch::Attention>> attention = (*runtime)->Prepare(*problem);
  if (!attention.ok()) return attention.status();
  return Launch(*problem, **gpu, **attention);
}

}  // namespace
}  // namespace attune::examples

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Launches a problem's kernel on tensors that are files; see the head of launch_files.cc.");
  absl::ParseCommandLine(argc, argv);
  const absl::StatusOr<std::string> report = attune::examples::Main();
  if (!report.ok()) {
    std::cerr << "launch_files: " << report.status() << "\n";
    return EXIT_FAILURE;
  }
  std::cout << *report << "\n";
  return EXIT_SUCCESS;
}
