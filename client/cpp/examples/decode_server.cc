// The attention of a decode server: a batch of sequences that grow by a token a step, their keys and values in pages.
//
//   decode_server --server=unix:/run/attune/attuned.sock
//   decode_server --snapshot=h200.snapshot
//
// The problem's kv length is the longest that a sequence may be. A shape is chosen by it and not by how long the
// sequences are: here half of it until a sequence outgrows that, and all of it from then on, so that there are two
// kernels and two graphs for every length. Each step launches its kernel in three ways (Run, a captured graph, and a
// plan in scratch memory of its own), and compares all three with attention as computed by the host.
//
// Prints one JSON object; fails when an output is wrong.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <numeric>
#include <random>
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
#include "client/cpp/examples/device_memory.h"
#include "client/cpp/launch/runtime.h"

ABSL_FLAG(std::string, server, "", "host:port or unix:/path of the attune server");
ABSL_FLAG(std::string, snapshot, "", "a file of `attune export`, in place of a server or for when there is none");
ABSL_FLAG(int, device, 0, "the GPU");
ABSL_FLAG(std::string, problem, "b4.h32.kvh8.q1.kv1024.d128.bf16.page16", "bf16, q1 and paged");
ABSL_FLAG(int, steps, 48, "tokens to decode; they end at the problem's kv length");
ABSL_FLAG(int, warm_seconds, 120, "how long to wait for the kernels");

namespace attune::examples {
namespace {

using launch::Address;
using launch::Shape;
using launch::Tensors;

constexpr double kTolerance = 2e-2;  // of bf16 outputs of about 1

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

std::vector<uint16_t> RandomBf16(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> values(count);
  for (uint16_t& value : values) value = static_cast<uint16_t>(std::bit_cast<uint32_t>(normal(generator)) >> 16);
  return values;
}

// Keys and values of every sequence up to the problem's kv length, in pages that lie in no order.
class Cache {
 public:
  explicit Cache(const Problem& problem)
      : problem_(problem),
        pages_a_sequence_((problem.seq_kv + problem.page_size - 1) / problem.page_size),
        order_(static_cast<size_t>(problem.batch * pages_a_sequence_)) {
    std::iota(order_.begin(), order_.end(), 0);
    std::shuffle(order_.begin(), order_.end(), std::mt19937(1));
    const auto elements = order_.size() * static_cast<size_t>(problem.page_size * problem.heads_kv * problem.head_dim);
    keys = RandomBf16(elements, 2);
    values = RandomBf16(elements, 3);
  }

  // The page table of a shape whose sequences may be `seq_kv` long.
  std::vector<int32_t> Table(int64_t seq_kv) const {
    const int64_t width = (seq_kv + problem_.page_size - 1) / problem_.page_size;
    std::vector<int32_t> table;
    for (int64_t b = 0; b < problem_.batch; ++b) {
      const auto first = order_.begin() + b * pages_a_sequence_;
      table.insert(table.end(), first, first + width);
    }
    return table;
  }

  // Where key `key` of a sequence is among `keys` and `values`.
  size_t At(int64_t sequence, int64_t key, int64_t head) const {
    const int64_t page = order_[static_cast<size_t>(sequence * pages_a_sequence_ + key / problem_.page_size)];
    return static_cast<size_t>(((page * problem_.page_size + key % problem_.page_size) * problem_.heads_kv + head) *
                               problem_.head_dim);
  }

  std::vector<uint16_t> keys, values;

 private:
  const Problem problem_;
  const int64_t pages_a_sequence_;
  std::vector<int32_t> order_;
};

// Attention of one query row, in double.
std::vector<double> OnHost(const Problem& problem, const Cache& cache, const uint16_t* q, int64_t sequence,
                           int64_t head, int64_t length) {
  const auto dim = static_cast<size_t>(problem.head_dim);
  std::vector<double> weights(static_cast<size_t>(length)), out(dim);
  for (int64_t key = 0; key < length; ++key) {
    const uint16_t* k = &cache.keys[cache.At(sequence, key, head)];
    double logit = 0;
    for (size_t d = 0; d < dim; ++d) logit += FromBf16(q[d]) * FromBf16(k[d]);
    weights[static_cast<size_t>(key)] = logit / std::sqrt(problem.head_dim);
  }
  const double greatest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (int64_t key = 0; key < length; ++key) {
    const double weight = std::exp(weights[static_cast<size_t>(key)] - greatest);
    const uint16_t* v = &cache.values[cache.At(sequence, key, head)];
    for (size_t d = 0; d < dim; ++d) out[d] += weight * FromBf16(v[d]);
    sum += weight;
  }
  for (double& value : out) value /= sum;
  return out;
}

double WorstError(const Problem& problem, const Cache& cache, const std::vector<uint16_t>& q,
                  const std::vector<int32_t>& lengths, const std::vector<uint16_t>& o) {
  double worst = 0;
  for (int64_t row = 0; row < problem.batch * problem.heads_q; ++row) {
    const int64_t sequence = row / problem.heads_q;
    const int64_t head = row % problem.heads_q / (problem.heads_q / problem.heads_kv);
    const auto at = static_cast<size_t>(row * problem.head_dim);
    const std::vector<double> right =
        OnHost(problem, cache, &q[at], sequence, head, lengths[static_cast<size_t>(sequence)]);
    for (size_t d = 0; d < right.size(); ++d) {
      const double error = std::abs(FromBf16(o[at + d]) - right[d]);
      worst = error <= worst ? worst : error;  // NaN is the worst
    }
  }
  return worst;
}

// A shape, with what launches it: its tensors, its graph and its plan.
struct Bucket {
  Shape shape;
  Tensors tensors;
  device::cuda::GraphExec graph;
  launch::PlanPtr plan;
  Address scratch = 0;
};

class Server {
 public:
  Server(const Problem& problem, Gpu& gpu, launch::Attention& attention)
      : problem_(problem), gpu_(gpu), attention_(attention), cache_(problem) {}

  absl::Status Prepare() {
    const int64_t half = problem_.seq_kv / 2;
    const Shape shapes[] = {{problem_.batch, 1, half}, {problem_.batch, 1, problem_.seq_kv}};
    const absl::Duration wait = absl::Seconds(absl::GetFlag(FLAGS_warm_seconds));
    if (absl::Status status = attention_.Warm(shapes, wait); !status.ok()) return status;
    Tensors tensors;
    absl::Status status = Put(cache_.keys, tensors.k);
    status.Update(Put(cache_.values, tensors.v));
    status.Update(Put(std::vector<uint16_t>(QElements()), tensors.q));
    status.Update(Put(std::vector<uint16_t>(QElements()), tensors.o));
    status.Update(Put(std::vector<int32_t>(BatchSize(), 1), tensors.seqused_k));
    for (const Shape& shape : shapes) {
      Bucket bucket = {.shape = shape, .tensors = tensors, .graph = {}, .plan = nullptr};
      status.Update(Put(cache_.Table(shape.seq_kv), bucket.tensors.block_table));
      if (!status.ok()) return status;
      buckets_.push_back(std::move(bucket));
      if (status = Record(buckets_.back()); !status.ok()) return status;
    }
    return status;
  }

  // Decodes a token of every sequence; the first is `length` long, each other one a little shorter.
  absl::Status Step(int64_t length) {
    std::vector<int32_t> lengths(BatchSize());
    for (size_t b = 0; b < lengths.size(); ++b) {
      lengths[b] = static_cast<int32_t>(std::max<int64_t>(1, length - 7 * static_cast<int64_t>(b)));
    }
    Bucket& bucket = length <= buckets_[0].shape.seq_kv ? buckets_[0] : buckets_[1];
    const std::vector<uint16_t> q = RandomBf16(QElements(), static_cast<unsigned>(length));
    absl::Status status = gpu_.Upload(bucket.tensors.q, q.data(), 2 * q.size());
    status.Update(SetLengths(lengths));
    if (!status.ok()) return status;
    for (const Way& way : Ways(bucket)) {
      const absl::StatusOr<std::vector<uint16_t>> o = Output(bucket, way.launch);
      if (!o.ok()) return o.status();
      const double error = WorstError(problem_, cache_, q, lengths, *o);
      worst_error_ = error <= worst_error_ ? worst_error_ : error;
      if (!(error <= kTolerance)) {
        return absl::InternalError(absl::StrCat("length ", length, ", ", way.name, ": an output is off by ", error));
      }
    }
    ++steps_;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Report() {
    std::string text = absl::StrFormat("{\"problem\": \"%s\", \"steps\": %d, \"max_abs_error\": %.3g, \"shapes\": [",
                                       ToText(problem_), steps_, worst_error_);
    for (Bucket& bucket : buckets_) {
      // The longest that its pages are for: those of the last step may need more.
      if (absl::Status status = SetLengths(std::vector(BatchSize(), static_cast<int32_t>(bucket.shape.seq_kv)));
          !status.ok()) {
        return status;
      }
      absl::StrAppendFormat(&text, "%s{\"seq_kv\": %d, \"variant\": \"%s\", \"launches\": %d, \"scratch_bytes\": %d",
                            &bucket == buckets_.data() ? "" : ", ", bucket.shape.seq_kv,
                            bucket.plan->answer().variant().text(), bucket.plan->launches(),
                            bucket.plan->scratch_bytes());
      for (const Way& way : Ways(bucket)) {
        const absl::StatusOr<HostTime> time = TimeOnHost(gpu_, way.launch);
        if (!time.ok()) return time.status();
        absl::StrAppendFormat(&text, ", \"%s\": {\"median_us\": %.3f, \"p10_us\": %.3f, \"p90_us\": %.3f}", way.name,
                              time->median_us, time->p10_us, time->p90_us);
      }
      text += "}";
    }
    return text + "]}";
  }

 private:
  struct Way {
    const char* name;
    std::function<absl::Status()> launch;
  };

  size_t BatchSize() const { return static_cast<size_t>(problem_.batch); }
  size_t QElements() const { return static_cast<size_t>(problem_.batch * problem_.heads_q * problem_.head_dim); }

  template <typename T>
  absl::Status Put(const std::vector<T>& values, Address& address) {
    const absl::StatusOr<Address> allocated = gpu_.Allocate(values.size() * sizeof(T));
    if (!allocated.ok()) return allocated.status();
    address = *allocated;
    return gpu_.Upload(address, values.data(), values.size() * sizeof(T));
  }

  // Of all buckets, which share the address.
  absl::Status SetLengths(const std::vector<int32_t>& lengths) {
    return gpu_.Upload(buckets_[0].tensors.seqused_k, lengths.data(), 4 * lengths.size());
  }

  absl::Status Record(Bucket& bucket) {
    absl::StatusOr<launch::PlanPtr> plan = attention_.Find(bucket.shape);
    if (!plan.ok()) return plan.status();
    bucket.plan = *std::move(plan);
    const absl::StatusOr<Address> scratch = gpu_.Allocate(bucket.plan->scratch_bytes());
    if (!scratch.ok()) return scratch.status();
    bucket.scratch = *scratch;
    if (bucket.plan->zeroed_bytes() > 0) {
      if (absl::Status status = gpu_.Fill(bucket.scratch, 0, bucket.plan->zeroed_bytes()); !status.ok()) return status;
    }
    absl::StatusOr<device::cuda::GraphExec> graph =
        gpu_.Capture([&] { return attention_.Run(gpu_.stream(), bucket.tensors, bucket.shape); });
    if (!graph.ok()) return graph.status();
    bucket.graph = *std::move(graph);
    return absl::OkStatus();
  }

  std::vector<Way> Ways(Bucket& bucket) {
    return {{"run", [&] { return attention_.Run(gpu_.stream(), bucket.tensors, bucket.shape); }},
            {"graph", [&] { return gpu_.Replay(bucket.graph); }},
            {"plan", [&] { return bucket.plan->Enqueue(bucket.tensors, gpu_.stream(), bucket.scratch); }}};
  }

  // What `launch` writes, over NaN.
  absl::StatusOr<std::vector<uint16_t>> Output(const Bucket& bucket, const std::function<absl::Status()>& launch) {
    std::vector<uint16_t> o(QElements());
    absl::Status status = gpu_.Fill(bucket.tensors.o, 0xff, 2 * o.size());
    if (status.ok()) status = launch();
    if (status.ok()) status = gpu_.Download(o.data(), bucket.tensors.o, 2 * o.size());
    if (!status.ok()) return status;
    return o;
  }

  const Problem problem_;
  Gpu& gpu_;
  launch::Attention& attention_;
  const Cache cache_;
  std::vector<Bucket> buckets_;
  double worst_error_ = 0;
  int steps_ = 0;
};

absl::StatusOr<std::string> Decode() {
  const absl::StatusOr<Problem> problem = ParseProblem(absl::GetFlag(FLAGS_problem));
  if (!problem.ok()) return problem.status();
  if (problem->dtype != v1::DTYPE_BF16 || problem->seq_q != 1 || problem->page_size == 0 || problem->varlen ||
      problem->lse || problem->sinks || problem->softcap != 0 || problem->mask != v1::MASK_NONE) {
    return absl::InvalidArgumentError(
        absl::StrCat("problem is ", ToText(*problem), "; it must be b<N>.h<N>.q1.kv<N>.d<N>.bf16.page<N>"));
  }
  absl::StatusOr<std::unique_ptr<Gpu>> gpu = Gpu::Open(absl::GetFlag(FLAGS_device));
  if (!gpu.ok()) return gpu.status();
  absl::StatusOr<std::unique_ptr<launch::Runtime>> runtime =
      launch::Runtime::Open({.server = absl::GetFlag(FLAGS_server),
                             .snapshot = absl::GetFlag(FLAGS_snapshot),
                             .device = absl::GetFlag(FLAGS_device)});
  if (!runtime.ok()) return runtime.status();
  absl::StatusOr<std::unique_ptr<launch::Attention>> attention = (*runtime)->Prepare(*problem);
  if (!attention.ok()) return attention.status();
  Server server(*problem, **gpu, **attention);
  if (absl::Status status = server.Prepare(); !status.ok()) return status;
  // Around the length from which on the larger shape is needed, then up to the end.
  const int steps = absl::GetFlag(FLAGS_steps);
  for (int step = 0; step < steps; ++step) {
    const int64_t from = step < steps / 2 ? problem->seq_kv / 2 - steps / 4 : problem->seq_kv - steps + 1;
    if (absl::Status status = server.Step(std::max<int64_t>(1, from + step)); !status.ok()) return status;
  }
  absl::StatusOr<std::string> report = server.Report();
  const absl::Status ended = (*gpu)->Wait();
  return ended.ok() ? report : ended;
}

}  // namespace
}  // namespace attune::examples

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Decodes with attune's kernels, over growing lengths; see the head of decode_server.cc.");
  absl::ParseCommandLine(argc, argv);
  const absl::StatusOr<std::string> report = attune::examples::Decode();
  if (!report.ok()) {
    std::cerr << "decode_server: " << report.status() << "\n";
    return EXIT_FAILURE;
  }
  std::cout << *report << "\n";
  return EXIT_SUCCESS;
}
