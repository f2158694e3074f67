// Every request of the API, mutated by its fields and by its bytes, against a running daemon: it lives, answers with
// the codes of a caller's mistake, keeps its memory and keeps others waiting no longer. The same seed sends the same
// requests from the same number of threads; a request that was answered wrongly is printed as hexadecimal.
//
// Work that a request starts is cancelled at once: the daemon is tested, not its workers.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
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
#include "google/protobuf/text_format.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/load/daemon_watch.h"

ABSL_FLAG(std::string, server, "localhost:7411", "address");
ABSL_FLAG(int, pid, 0, "of the daemon");
ABSL_FLAG(int, count, 10000, "requests");
ABSL_FLAG(int, seed, 1, "of the mutations");
ABSL_FLAG(int, threads, 4, "that send");
ABSL_FLAG(absl::Duration, most_time, absl::InfiniteDuration(), "stop then, however many were sent");
ABSL_FLAG(double, most_mib, 200, "of the daemon's memory, ever; more is a failure");

namespace attune {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using google::protobuf::Reflection;
using Random = std::mt19937_64;

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
       "seq_q: 16 head_dim: 64 dtype: 'f16' mask: 'none' } } budget { trials_per_problem: 1 } }"},
      {"EvaluateVariant", absl::StrCat(kProblem, " variant { text: 'attention_opencl:BLOCK_M=16' }")},
      {"ListTrials", "page_size: 3 filter { problem: 'b1.h1.q16.d64.f16' verdicts: VERDICT_OK } order: ORDER_FASTEST"},
      {"ListOperations", "page_size: 2"},
      {"ListIncumbents", "problem: 'b1.h1.q16.d64.f16' history: true"},
      {"ListBaselines", "problem: 'b1.h1.q16.d64.f16' page_size: 3"},
      {"ListRetimings", "problem: 'b1.h1.q16.d64.f16' spans: 7 start_time { seconds: 5 }"},
      {"ListMisses", "device_id: 'l4' page_size: 3"},
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
  return method == "Tune" || method == "Sweep" || method == "EvaluateVariant";
}

// One thread's requests.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string Request(const MethodDescriptor& method) {
    if (Chance(0.05)) return Bytes(Below(200));
    const std::unique_ptr<Message> message(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.input_type())->New());
    google::protobuf::TextFormat::ParseFromString(SeedOf(method.name()), message.get());
    if (Chance(0.9)) Mutate(*message);
    std::string bytes = message->SerializeAsString();
    if (Chance(0.3)) MutateBytes(bytes);
    if (Chance(0.01)) absl::StrAppend(&bytes, Padding(Below(300'000)));
    return bytes;
  }

  bool Chance(double share) { return std::uniform_real_distribution<>()(random_) < share; }
  uint64_t Below(uint64_t end) { return random_() % end; }

 private:
  template <typename T, size_t N>
  const T& OneOf(const T (&values)[N]) {
    return values[Below(N)];
  }

  std::string Bytes(size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  // Field 99, which no message has.
  std::string Padding(size_t size) {
    std::string field = "\x9a\x06";
    for (uint64_t left = size;; left >>= 7) {
      field.push_back(static_cast<char>(left > 127 ? (left & 127) | 128 : left));
      if (left <= 127) break;
    }
    return field + std::string(size, 'x');
  }

  std::string Text() {
    static const char* const kTexts[] = {"",
                                         "b1.h1.q16.d64.f16",
                                         "\x1b[31m",
                                         "%s%n",
                                         "../../etc/passwd",
                                         "\u00e9\U0001F600",
                                         "b1.h1.q16.d64.f16.softcap1e308",
                                         "b1.h1.q16.d64.f16.window9223372036854775807",
                                         "b65536.h65536.q16777216.d1024.f16",
                                         "trials/9223372036854775807",
                                         "trials/-1",
                                         "incumbents/1",
                                         "operations/ffffffffffffffff",
                                         "'; DROP TABLE trials;--",
                                         "opencl:0",
                                         "cuda:0",
                                         "profile:",
                                         "profile:h200",
                                         "profile:../x",
                                         "attention_opencl",
                                         "attention_opencl:",
                                         "attention_opencl:BLOCK_M=",
                                         "attention_opencl:BLOCK_M=99999999999999999999",
                                         ".",
                                         "..",
                                         "b1.b1",
                                         "b01.h+1.q16.d64.f16",
                                         "none",
                                         "causal",
                                         "bf16"};
    if (Chance(0.02)) return std::string(Below(Chance(0.1) ? 100'000 : 2'000), 'a');
    return OneOf(kTexts);
  }

  int64_t Integer() {
    static const int64_t kIntegers[] = {0,
                                        1,
                                        -1,
                                        2,
                                        3,
                                        7,
                                        8,
                                        16,
                                        17,
                                        63,
                                        64,
                                        127,
                                        128,
                                        255,
                                        256,
                                        1000,
                                        1001,
                                        65535,
                                        65536,
                                        65537,
                                        1 << 24,
                                        (1 << 24) + 1,
                                        std::numeric_limits<int32_t>::max(),
                                        int64_t{1} << 31,
                                        int64_t{1} << 32,
                                        int64_t{1} << 40,
                                        int64_t{1} << 53,
                                        int64_t{1} << 62,
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min(),
                                        std::numeric_limits<int32_t>::min()};
    return OneOf(kIntegers);
  }

  double Number() {
    static const double kNumbers[] = {0.0,
                                      -0.0,
                                      1.0,
                                      -1.0,
                                      std::nan(""),
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      1e308,
                                      5e-324,
                                      0.02,
                                      1e-9};
    return OneOf(kNumbers);
  }

  void Mutate(Message& message) {
    const auto& type = *message.GetDescriptor();
    if (type.field_count() == 0) return;
    for (uint64_t left = 1 + Below(3); left > 0; --left) {
      const FieldDescriptor& field = *type.field(static_cast<int>(Below(type.field_count())));
      if (!field.is_repeated()) {
        Set(message, field, false);
      } else {
        static const int kCounts[] = {1, 1, 2, 40};
        for (int count = Chance(0.01) ? 3000 : OneOf(kCounts); count > 0; --count) Set(message, field, true);
      }
    }
  }

  void Set(Message& message, const FieldDescriptor& field, bool add) {
    const Reflection& r = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (add) return Mutate(*r.AddMessage(&message, &field));
        return Chance(0.15) ? r.ClearField(&message, &field) : Mutate(*r.MutableMessage(&message, &field));
      case FieldDescriptor::CPPTYPE_STRING:
        return add ? r.AddString(&message, &field, Text()) : r.SetString(&message, &field, Text());
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return add ? r.AddDouble(&message, &field, Number()) : r.SetDouble(&message, &field, Number());
      case FieldDescriptor::CPPTYPE_BOOL:
        return add ? r.AddBool(&message, &field, Chance(0.5)) : r.SetBool(&message, &field, Chance(0.5));
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int value = Chance(0.5) ? static_cast<int>(Below(10)) : static_cast<int>(Integer());
        return add ? r.AddEnumValue(&message, &field, value) : r.SetEnumValue(&message, &field, value);
      }
      case FieldDescriptor::CPPTYPE_INT32: {
        const auto value = static_cast<int32_t>(Integer());
        return add ? r.AddInt32(&message, &field, value) : r.SetInt32(&message, &field, value);
      }
      case FieldDescriptor::CPPTYPE_INT64:
        return add ? r.AddInt64(&message, &field, Integer()) : r.SetInt64(&message, &field, Integer());
      case FieldDescriptor::CPPTYPE_UINT64: {
        const auto value = static_cast<uint64_t>(Integer());
        return add ? r.AddUInt64(&message, &field, value) : r.SetUInt64(&message, &field, value);
      }
      default:
        return;  // requests have no others
    }
  }

  void MutateBytes(std::string& bytes) {
    for (uint64_t left = 1 + Below(5); left > 0; --left) {
      const size_t at = Below(bytes.size() + 1);
      switch (Below(5)) {
        case 0:
          if (at < bytes.size()) bytes[at] = static_cast<char>(random_());
          break;
        case 1:
          bytes.insert(at, Bytes(1 + Below(7)));
          break;
        case 2:
          bytes.erase(at, 1 + Below(7));
          break;
        case 3:
          bytes += bytes.substr(0, std::min<size_t>(at, 10'000));
          break;
        default:
          bytes.resize(at);
      }
    }
  }

  Random random_;
};

// Bytes in, a status and bytes out.
class Caller {
 public:
  explicit Caller(const std::string& server)
      : channel_(grpc::CreateChannel(server, grpc::InsecureChannelCredentials())), stub_(channel_) {}

  // Of a stream the first answer counts, which comes at once, and the call is dropped.
  grpc::Status Call(const MethodDescriptor& method, const std::string& request, std::string* response) {
    grpc::ClientContext context;
    const bool stream = method.server_streaming();
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    const auto call =
        stub_.PrepareCall(&context, absl::StrCat("/", method.service()->full_name(), "/", method.name()), &queue_);
    const grpc::Slice slice(request);
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->StartCall(nullptr);
    bool alive = Wait();
    if (alive) {
      call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
      alive = Wait();
    }
    if (alive) {
      call->Read(&answer, nullptr);
      if (Wait() && stream) context.TryCancel();
    }
    call->Finish(&status, nullptr);
    Wait();
    grpc::Slice bytes;
    if (answer.Valid() && answer.DumpToSingleSlice(&bytes).ok()) {
      response->assign(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
      if (stream) return grpc::Status::OK;
    }
    return status;
  }

 private:
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::CompletionQueue queue_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
};

// What a caller may be told who sends nonsense. DEADLINE_EXCEEDED is none of it: somebody was kept waiting.
bool Expected(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return true;
    default:
      return false;
  }
}

class Fuzz {
 public:
  int Run() {
    const pid_t pid = absl::GetFlag(FLAGS_pid);
    const auto& service = *v1::GetBestRequest::descriptor()->file()->FindServiceByName("AttuneService");
    for (int i = 0; i < service.method_count(); ++i) methods_.push_back(service.method(i));
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
    Mutator mutator(static_cast<uint64_t>(absl::GetFlag(FLAGS_seed)) * 1000 + thread);
    Caller caller(absl::GetFlag(FLAGS_server));
    while (wrong_ < 20 && absl::Now() < end_ && sent_++ < absl::GetFlag(FLAGS_count)) {
      const MethodDescriptor& method = Method(mutator);
      const std::string request = mutator.Request(method);
      std::string response;
      const grpc::Status status = caller.Call(method, request, &response);
      if (status.ok() && StartsWork(method.name())) Cancel(caller, response);
      const std::lock_guard lock(mutex_);
      ++codes_[status.error_code()];
      if (Expected(status) || (method.server_streaming() && status.error_code() == grpc::StatusCode::CANCELLED))
        continue;
      ++wrong_;
      std::printf("%s: status %d, %s\n  %s\n", method.name().c_str(), status.error_code(),
                  status.error_message().substr(0, 200).c_str(),
                  absl::BytesToHexString(request.substr(0, 500)).c_str());
    }
  }

  // What starts work, or computes for long, comes less often.
  const MethodDescriptor& Method(Mutator& mutator) {
    while (true) {
      const MethodDescriptor& method = *methods_[mutator.Below(methods_.size())];
      const bool heavy = StartsWork(method.name()) || method.name() == "Preflight" || method.name() == "PlanSweep";
      if (!heavy || mutator.Chance(0.15)) return method;
    }
  }

  void Cancel(Caller& caller, const std::string& started) {
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
