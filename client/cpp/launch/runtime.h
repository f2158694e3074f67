// Launches the served kernels from C++: asks an attune server in the background, loads their code through libcuda, and
// runs them on any stream. Needs the NVIDIA driver, no CUDA toolkit. attune_launch.h is the same for C.
//
//   auto runtime = attune::launch::Runtime::Open({.server = "unix:/run/attune/attuned.sock"});
//   auto attention = (*runtime)->Prepare({.heads_q = 32, .heads_kv = 8, .head_dim = 128, .dtype = v1::DTYPE_BF16});
//   absl::Status status = (*attention)->Run(stream, {.q = q, .k = k, .v = v, .o = o}, {.batch = 8, .seq_q = 1,
//                                           .seq_kv = 4096});
//   if (!status.ok()) OwnKernel(stream, ...);
//
// Run never calls the server: what it does not know it asks for in the background, and until there is an answer it
// returns Unavailable, so that the caller runs a kernel of its own.
//
// Threading: every method may be called from any thread at once, on any streams, also on one stream.
// Ownership: a Runtime outlives its Attentions and all work that they have launched; destroying it waits for the call
// of the server that the background is in (seconds). Scratch memory is kept by the stream's handle: a stream must not
// be destroyed, and another take its handle, while its work is running. Loaded code stays loaded as long as the
// process. CUDA graphs: Run may be called while its stream is being captured. A captured launch reads the addresses
// that it was given and the lengths in the memory behind them (seqused_k, block_table), so that one graph serves every
// length up to the shape's. Its scratch memory belongs to the graph: two executables of one graph must not run at once.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_RUNTIME_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_RUNTIME_H_

#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "attune/v1/service.pb.h"
#include "client/cpp/launch/allocator.h"
#include "client/cpp/launch/plan.h"
#include "client/cpp/launch/strides.h"
#include "client/cpp/launch/tensors.h"
#include "proto/attune/problem.h"

namespace attune::launch {

class Answers;
class Attention;
class Gpu;

struct RuntimeOptions {
  std::string server = {};    // "host:port", "unix:/path"; empty: none
  std::string snapshot = {};  // a file of Client::ExportSnapshot, for when no server answers; empty: none
  int device = 0;             // the GPU, as this process counts them
  // The server's name for that GPU; empty: the device with its UUID, else the first of its model.
  std::string server_device = {};
  v1::Policy policy = v1::POLICY_HOT;
  // Answers of other provenances are not run.
  std::vector<v1::Provenance> acceptable = {v1::PROVENANCE_EXACT, v1::PROVENANCE_TIE, v1::PROVENANCE_STALE,
                                            v1::PROVENANCE_NEAREST};
  // Between looks at whether the answers in use are still the server's: a roll-back is in force after this time.
  absl::Duration revalidate = absl::Seconds(20);
  // Before a problem without an answer is asked for again; twice as long each time, up to eight times that.
  absl::Duration hold = absl::Seconds(30);
  ScratchAllocator* scratch_allocator = nullptr;  // not owned; null: cuMemAlloc
};

class Runtime {
 public:
  // Asks nobody yet: a server that cannot be reached shows in what Run returns.
  // Unavailable without an NVIDIA driver; InvalidArgument names an option that is wrong; the snapshot's NotFound,
  // DataLoss or FailedPrecondition.
  static absl::StatusOr<std::unique_ptr<Runtime>> Open(RuntimeOptions options);
  // With answers from elsewhere; null: only from Load.
  static absl::StatusOr<std::unique_ptr<Runtime>> Open(RuntimeOptions options, std::unique_ptr<Answers> answers);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Attention of one form: `form` without its batch and lengths, which each call brings. Its mask is taken as it is:
  // ParseProblem makes `causal-br` of equal lengths `causal`. InvalidArgument names the field, its value and what is
  // allowed.
  absl::StatusOr<std::unique_ptr<Attention>> Prepare(const Problem& form);

  // Uses `answer`, which has its artifact, for its problem from now on; nobody is asked for that problem any more.
  // InvalidArgument, DataLoss, FailedPrecondition: what is wrong with it.
  absl::Status Load(const v1::GetBestResponse& answer);

  // Has the answers in use compared with the server's, and asks again for what had none. Waits for nothing.
  void Refresh();
  // Until all that was asked for is answered, or `timeout`; false when that was too short.
  bool WaitUntilIdle(absl::Duration timeout);

  // Launches `plan` in scratch memory of the runtime's, kept for each stream and each captured graph.
  // Plan::Enqueue's errors; ResourceExhausted, and nothing was launched, when there is no memory.
  absl::Status Enqueue(const Plan& plan, const Tensors& tensors, Stream stream);

  // As the server describes the GPU: model, UUID, limits.
  const v1::Device& device() const;

 private:
  friend class Attention;
  struct Impl;
  explicit Runtime(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// Attention of one form, at any shape.
class Attention {
 public:
  ~Attention();
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  const Problem& form() const { return form_; }

  // Launches on `stream`: microseconds of host time, no call of the server. `o` (and `lse`) are written when the stream
  // gets there.
  // Unavailable: there is no kernel for this shape yet, and nothing was launched; the message says why, and the
  // background asks. InvalidArgument names what is wrong with a tensor or the shape. Runtime::Enqueue's errors.
  absl::Status Run(Stream stream, const Tensors& tensors, const Shape& shape);

  // The kernel that Run would launch, to launch it with the caller's scratch memory (Plan::Enqueue), or often; it stays
  // as it is when the server's answer changes. Run's Unavailable and InvalidArgument.
  absl::StatusOr<std::shared_ptr<const Plan>> Find(const Shape& shape);

  // The same for tensors that lie otherwise than in the problem's layout, where the kernel can read them so. The first
  // call with a placement costs more. InvalidArgument names tensor and stride: PlacedRecipe's.
  absl::Status RunPlaced(Stream stream, const Tensors& tensors, const Shape& shape, const Placement& placement);
  absl::StatusOr<std::shared_ptr<const Plan>> FindPlaced(const Shape& shape, const Placement& placement);

  // Has the kernels of `shapes` found and loaded: before a capture, or before the first request. DeadlineExceeded after
  // `timeout`, else the first shape's error of Find, once all of them are answered.
  absl::Status Warm(absl::Span<const Shape> shapes, absl::Duration timeout);

 private:
  friend class Runtime;
  struct Known;
  Attention(Runtime* runtime, const Problem& form);

  Runtime* const runtime_;
  const Problem form_;
  std::unique_ptr<Known> known_;
};

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_RUNTIME_H_
