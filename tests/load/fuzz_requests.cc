// Every request of the API, mutated by its fields and by its bytes, against a running daemon: it lives, answers with
// the codes of a caller's mistake, keeps its memory and keeps others waiting no longer. The same seed sends the same
// requests from the same number of threads; a request that was answered wrongly is printed as hexadecimal.
//
// Work that a request starts is cancelled at once: the daemon is tested, not its workers.
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attune/v1/blob.pb.h"
#include "google/protobuf/text_format.h"
#include "tests/fuzz/mutator.h"
#include "tests/load/daemon_watch.h"
#include "tests/load/raw_caller.h"

ABSL_FLAG(std::string, server, "localhost:7411", "address");
ABSL_FLAG(int, pid, 0, "of the daemon");
ABSL_FLAG(int, count, 10000, "requests");
ABSL_FLAG(int, seed, 1, "of the mutations");
ABSL_FLAG(int, threads, 4, "that send");
ABSL_FLAG(absl::Duration, most_time, absl::InfiniteDuration(), "stop then, however many were sent");
ABSL_FLAG(double, most_mib, 200, "of the daemon's memory, ever; more is a failure");

namespace attune {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

constexpr char kProblem[] = "problem { batch: 1 heads_q: 1 seq_q: 16 head_dim: 64 dtype: DTYPE_F16 }";

// What the mutations start from, as text.
std::string SeedOf(const std::string& method) {
  static const auto* const seeds = new std::map<std::string, std::string>{
      {"GetBest", absl::StrCat(kProblem, " acceptable: PROVENANCE_HEURISTIC")},
      {"Preflight", absl::StrCat(kProblem, " device_id: 'profile:l4' list_variants: true")},
      {"Tune", absl::StrCat(kProblem, " request_id: 'r' families: 'attention_opencl' background: true ",
                            "strategy { kind: KIND_RANDOM max_trials: 1 max_time { seconds: 1 } }")},
      {"Sweep",
       "request_id: 's' plan { title: 't' shapes { problem: 'b1.h1.q16.d64.f16' product { batch: 1 heads_q: 1 "
       "seq_q: 16 head_dim: 64 dtype: 'f16' mask: 'none' } } budget { trials_per_problem: 1 } sanitize: true }"},
      {"EvaluateVariant", absl::StrCat(kProblem, " variant { text: 'attention_opencl:BLOCK_M=16' }")},
      {"Submit",
       absl::StrCat("problems { batch: 1 heads_q: 1 seq_q: 16 head_dim: 64 dtype: DTYPE_F16 } loop: 'l' ",
                    "files { path: 'k.cl' text: '/* attune launches { entry: \"k\" grid_x: \"1\" main: true } ",
                    "*/ __kernel void k() {}' } hypothesis: 'h' base: 'previous' sanitize_every: 2")},
      {"Profile", absl::StrCat("code { ", kProblem, " variant { text: 'attention_opencl:BLOCK_M=16' } }")},
      {"Sanitize", "code { trial: 'trials/1' } tools: SANITIZER_TOOL_MEMCHECK"},
      {"GetSubmission", "name: 'submissions/1'"},
      {"ListSubmissions", "page_size: 2 loop: 'l'"},
      {"AdoptSubmission", "name: 'submissions/1'"},
      {"WithdrawSubmission", "name: 'submissions/1'"},
      {"ListTrials", "page_size: 3 filter { problem: 'b1.h1.q16.d64.f16' verdicts: VERDICT_OK } order: ORDER_FASTEST"},
      {"ListOperations", "page_size: 2"},
      {"ListIncumbents", "problem: 'b1.h1.q16.d64.f16' history: true"},
      {"ListBaselines", "problem: 'b1.h1.q16.d64.f16' page_size: 3"},
      {"ListRetimings", "problem: 'b1.h1.q16.d64.f16' spans: 7 start_time { seconds: 5 }"},
      {"ListTrends", "problem: 'b1.h1.q16.d64.f16' points: 9 end_time { seconds: 1800000000 } states: STATE_SLOWER"},
      {"CompareTimes",
       "from { end_time { seconds: 5 } driver: '580' } to { device_id: 'l4' family: 'attention_simt' }"},
      {"ListMisses", "device_id: 'l4' page_size: 3"},
      {"GetBlobs", "namespace: 'triton' key: 'k' files: 'f' files: 'g' principals: 'self' principals: 'loopback'"},
      {"PutBlob", "namespace: 'triton' key: 'k' file: 'f' data: 'bytes' shared: true"},
      {"ListBlobs", "namespace: 'triton' page_size: 2"},
      {"DeleteBlobs", "namespace: 'triton' key: 'k'"},
      {"CreateBackup", "id: 'nightly'"},
      {"ListBackups", "page_size: 2"},
      {"GetOperation", "name: 'operations/1'"},
      {"CancelOperation", "name: 'operations/1'"},
      {"GetTrial", "name: 'trials/1'"},
      {"WatchOperation", "name: 'operations/1'"},
      {"PlanSweep", "plan { shapes { problem: 'b1.h1.q16.d64.f16' } budget { trials_per_problem: 1 } }"},
      {"RetryTrials", "filter { problem: 'b1.h1.q16.d64.f16' verdicts: VERDICT_CRASHED }"},
      {"Unpin", kProblem},
      {"Explain", absl::StrCat("best { ", kProblem, " }")},
      {"RollBack", absl::StrCat(kProblem, " why: 'x'")},
      {"RecordBaseline", absl::StrCat("baseline { ", kProblem, " contender: 'c' median_us: 1 low_us: 1 high_us: 2 ",
                                      "record_time { seconds: 1700000000 } }")}};
  const auto it = seeds->find(method);
  return it == seeds->end() ? "" : it->second;
}

bool StartsWork(const std::string& method) {
  return method == "Tune" || method == "Sweep" || method == "EvaluateVariant" || method == "Submit" ||
         method == "Profile" || method == "Sanitize";
}

// One thread's requests.
class Requests {
 public:
  explicit Requests(uint64_t seed) : mutator_(seed) {}

  std::string Next(const MethodDescriptor& method) {
    if (mutator_.Chance(0.05)) return mutator_.Bytes(mutator_.Below(200));
    const std::unique_ptr<Message> message(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.input_type())->New());
    google::protobuf::TextFormat::ParseFromString(SeedOf(method.name()), message.get());
    if (mutator_.Chance(0.9)) mutator_.Mutate(*message);
    std::string bytes = message->SerializeAsString();
    if (mutator_.Chance(0.3)) mutator_.MutateBytes(bytes);
    if (mutator_.Chance(0.01)) absl::StrAppend(&bytes, Padding(mutator_.Below(300'000)));
    return bytes;
  }

  fuzz::Mutator& mutator() { return mutator_; }

 private:
  // Field 99, which no message has.
  std::string Padding(size_t size) {
    std::string field = "\x9a\x06";
    for (uint64_t left = size;; left >>= 7) {
      field.push_back(static_cast<char>(left > 127 ? (left & 127) | 128 : left));
      if (left <= 127) break;
    }
    return field + std::string(size, 'x');
  }

  fuzz::Mutator mutator_;
};

class Fuzz {
 public:
  int Run() {
    const pid_t pid = absl::GetFlag(FLAGS_pid);
    for (const auto* service : {v1::GetBestRequest::descriptor()->file()->FindServiceByName("AttuneService"),
                                v1::Blob::descriptor()->file()->FindServiceByName("BlobService")}) {
      for (int i = 0; i < service->method_count(); ++i) methods_.push_back(service->method(i));
    }
    const absl::Time begin = absl::Now();
    end_ = begin + absl::GetFlag(FLAGS_most_time);
    Bystander bystander(absl::GetFlag(FLAGS_server));
    std::vector<std::thread> threads;
    for (int i = 0; i < absl::GetFlag(FLAGS_threads); ++i) threads.emplace_back([this, i] { Send(i); });
    for (std::thread& thread : threads) thread.join();
    bystander.Stop();

    std::printf("%d requests in %s, seed %d\n", std::min(sent_.load(), absl::GetFlag(FLAGS_count)),
                absl::FormatDuration(absl::Trunc(absl::Now() - begin, absl::Seconds(1))).c_str(),
                absl::GetFlag(FLAGS_seed));
    for (const auto& [code, count] : codes_) std::printf("  status %d: %d\n", code, count);
    bystander.Print();
    const double now = MemoryMib(pid, "VmRSS");
    const double most = MemoryMib(pid, "VmHWM");
    std::printf("daemon: %.1f MiB resident, at most %.1f MiB\n", now, most);
    if (now == 0) std::printf("the daemon is gone\n");
    const bool fine = now > 0 && most <= absl::GetFlag(FLAGS_most_mib) && wrong_ == 0 && bystander.failed() == 0;
    std::printf(fine ? "fine\n" : "FAILED: %d unexpected answers\n", wrong_.load());
    return fine ? 0 : 1;
  }

 private:
  void Send(int thread) {
    Requests requests(static_cast<uint64_t>(absl::GetFlag(FLAGS_seed)) * 1000 + thread);
    RawCaller caller(absl::GetFlag(FLAGS_server));
    while (wrong_ < 20 && absl::Now() < end_ && sent_++ < absl::GetFlag(FLAGS_count)) {
      const MethodDescriptor& method = Method(requests.mutator());
      const std::string request = requests.Next(method);
      std::string response;
      const grpc::Status status = caller.Call(method, request, &response);
      if (status.ok() && StartsWork(method.name())) Cancel(caller, response);
      const std::lock_guard lock(mutex_);
      ++codes_[status.error_code()];
      if (IsExpected(status) || (method.server_streaming() && status.error_code() == grpc::StatusCode::CANCELLED))
        continue;
      ++wrong_;
      std::printf("%s: status %d, %s\n  %s\n", method.name().c_str(), status.error_code(),
                  status.error_message().substr(0, 200).c_str(),
                  absl::BytesToHexString(request.substr(0, 500)).c_str());
    }
  }

  // What starts work, or computes for long, comes less often.
  const MethodDescriptor& Method(fuzz::Mutator& mutator) {
    while (true) {
      const MethodDescriptor& method = *methods_[mutator.Below(methods_.size())];
      const bool heavy = StartsWork(method.name()) || method.name() == "Preflight" || method.name() == "PlanSweep";
      if (!heavy || mutator.Chance(0.15)) return method;
    }
  }

  void Cancel(RawCaller& caller, const std::string& started) {
    v1::Operation operation;
    v1::CancelOperationRequest cancel;
    if (!operation.ParseFromString(started)) return;
    cancel.set_name(operation.name());
    std::string response;
    for (const MethodDescriptor* method : methods_) {
      if (method->name() == "CancelOperation") caller.Call(*method, cancel.SerializeAsString(), &response);
    }
  }

  std::vector<const MethodDescriptor*> methods_;
  absl::Time end_;
  std::atomic<int> sent_ = 0;
  std::atomic<int> wrong_ = 0;
  std::mutex mutex_;
  std::map<int, int> codes_;
};

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return attune::Fuzz().Run();
}
