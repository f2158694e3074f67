// Many clients of every kind at once, for as long as is said, against a running daemon with a filled store: those that
// look up, list, explain, tune and cancel, watch and read slowly, call wrongly, connect anew for each call, or never
// end what they began. Says how long look-ups and pages took, and what of the daemon has grown; ends with 1 when
// something has, when it is gone, or when it answered other than it should.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/fuzz/mutator.h"
#include "tests/load/footprint.h"
#include "tests/load/raw_caller.h"

ABSL_FLAG(std::string, server, "", "address, unix:PATH");
ABSL_FLAG(int, pid, 0, "of the daemon");
ABSL_FLAG(int, clients, 256, "at once");
ABSL_FLAG(absl::Duration, time, absl::Minutes(30), "how long");
ABSL_FLAG(absl::Duration, pause, absl::Milliseconds(200), "of a client between two calls");
ABSL_FLAG(int, problems, 100, "of the filled store");
ABSL_FLAG(double, most_growth, 0.1, "of the daemon's memory from the first third of the time to the last, as a share");

namespace attune {
namespace {

using Stub = v1::AttuneService::Stub;

constexpr absl::Duration kSample = absl::Seconds(5);
constexpr absl::Duration kQuiet = absl::Minutes(2);  // most that the daemon has to let go of what clients left
constexpr int kSpareDescriptors = 8;
// Of the same load before anything is compared: workers start once and stay, caches fill.
constexpr absl::Duration kWarmUp = absl::Seconds(30);

// Milliseconds of one kind of call, from several threads.
class Times {
 public:
  void Add(double ms) {
    const std::lock_guard lock(mutex_);
    ms_.push_back(ms);
  }
  void Print(const char* what) {
    const std::lock_guard lock(mutex_);
    if (ms_.empty()) return;
    std::sort(ms_.begin(), ms_.end());
    const auto quantile = [&](double q) { return ms_[static_cast<size_t>(q * static_cast<double>(ms_.size() - 1))]; };
    std::printf("%s: %zu, p50 %.2f ms, p99 %.2f ms, max %.1f ms\n", what, ms_.size(), quantile(0.5), quantile(0.99),
                ms_.back());
  }

 private:
  std::mutex mutex_;
  std::vector<double> ms_;
};

// What all clients share.
struct Common {
  std::atomic<bool> stop = false;
  std::atomic<int64_t> calls = 0;
  std::mutex mutex;
  std::map<std::string, int> wrong;  // method and code that it should not have answered with: how often
  std::string operation;             // that was started last
  Times look_ups;
  Times pages;
};

std::shared_ptr<grpc::Channel> OwnChannel() {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(absl::GetFlag(FLAGS_server), grpc::InsecureChannelCredentials(), own);
}

class Client {
 public:
  Client(Common& common, int number) : common_(common), mutator_(number), number_(number) {}

  void Run() {
    using Kind = void (Client::*)();
    // Of sixteen: eight look up.
    constexpr Kind kKinds[] = {&Client::LookUp, &Client::ListTrials,  &Client::LookUp, &Client::Tune,
                               &Client::LookUp, &Client::List,        &Client::LookUp, &Client::WatchSlowly,
                               &Client::LookUp, &Client::CallWrongly, &Client::LookUp, &Client::Explain,
                               &Client::LookUp, &Client::ConnectAnew, &Client::LookUp, &Client::LeaveHalfOpen};
    const Kind kind = kKinds[static_cast<size_t>(number_) % std::size(kKinds)];
    Connect();
    while (!common_.stop) {
      (this->*kind)();
      ++common_.calls;
      absl::SleepFor(absl::GetFlag(FLAGS_pause) * (0.5 + 0.001 * static_cast<double>(mutator_.Below(1000))));
    }
  }

 private:
  void Connect() { stub_ = v1::AttuneService::NewStub(OwnChannel()); }

  // One of those with trials in the store.
  v1::Problem Problem() {
    return ToProto(
        *ParseProblem(absl::StrCat("b", 1 + mutator_.Below(absl::GetFlag(FLAGS_problems)), ".h8.q512.d64.f16")));
  }

  template <typename Request, typename Response>
  grpc::Status Call(const char* name, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    const grpc::Status status = (stub_.get()->*method)(&context, request, response);
    Judge(name, status);
    return status;
  }
  void Judge(const std::string& name, const grpc::Status& status) {
    if (IsExpected(status)) return;
    const std::lock_guard lock(common_.mutex);
    ++common_.wrong[absl::StrCat(name, " status ", status.error_code(), " ", status.error_message().substr(0, 100))];
  }

  void LookUp() {
    v1::GetBestRequest request;
    *request.mutable_problem() = Problem();
    request.set_device_id("cuda:0");
    v1::GetBestResponse response;
    const auto begin = Sleeper::Clock::now();
    if (Call("GetBest", &Stub::GetBest, request, &response).ok()) {
      common_.look_ups.Add(Sleeper::Ms(Sleeper::Clock::now() - begin));
    }
  }

  // A page of the longest list, then the next one.
  void ListTrials() {
    v1::ListTrialsRequest request;
    request.set_page_size(50);
    request.set_page_token(token_);
    if (fastest_) {
      request.set_order(v1::ListTrialsRequest::ORDER_FASTEST);
      request.mutable_filter()->set_problem("b3.h8.q512.d64.f16");
    }
    v1::ListTrialsResponse response;
    const auto begin = Sleeper::Clock::now();
    if (Call("ListTrials", &Stub::ListTrials, request, &response).ok()) {
      common_.pages.Add(Sleeper::Ms(Sleeper::Clock::now() - begin));
    }
    token_ = response.next_page_token();
    if (token_.empty() || mutator_.Chance(0.05)) {
      token_.clear();
      fastest_ = !fastest_;
    }
  }

  void List() {
    v1::ListOperationsRequest operations;
    operations.set_page_size(20);
    v1::ListOperationsResponse listed;
    Call("ListOperations", &Stub::ListOperations, operations, &listed);
    v1::ListIncumbentsRequest incumbents;
    v1::ListIncumbentsResponse served;
    Call("ListIncumbents", &Stub::ListIncumbents, incumbents, &served);
    v1::ListMissesRequest misses;
    v1::ListMissesResponse missed;
    Call("ListMisses", &Stub::ListMisses, misses, &missed);
  }

  void Tune() {
    v1::TuneRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(absl::StrCat("b1.h1.q", 1 + mutator_.Below(64), ".d64.f16")));
    request.set_background(mutator_.Chance(0.5));
    request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
    request.mutable_strategy()->set_max_trials(2);
    v1::Operation operation;
    if (!Call("Tune", &Stub::Tune, request, &operation).ok()) return;
    {
      const std::lock_guard lock(common_.mutex);
      common_.operation = operation.name();
    }
    absl::SleepFor(absl::Milliseconds(static_cast<int64_t>(mutator_.Below(3000))));
    v1::CancelOperationRequest cancel;
    cancel.set_name(operation.name());
    if (mutator_.Chance(0.7)) Call("CancelOperation", &Stub::CancelOperation, cancel, &operation);
  }

  // Reads now and then, and goes in the middle.
  void WatchSlowly() {
    v1::WatchOperationRequest request;
    {
      const std::lock_guard lock(common_.mutex);
      request.set_name(common_.operation);
    }
    if (request.name().empty()) return;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    const auto reader = stub_->WatchOperation(&context, request);
    v1::Operation operation;
    for (int i = 0; i < 3 && reader->Read(&operation) && !operation.done(); ++i) absl::SleepFor(absl::Seconds(1));
    context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (status.error_code() != grpc::StatusCode::CANCELLED) Judge("WatchOperation", status);
  }

  void CallWrongly() {
    if (caller_ == nullptr) caller_ = std::make_unique<RawCaller>(absl::GetFlag(FLAGS_server));
    const auto& service = *v1::GetBestRequest::descriptor()->file()->FindServiceByName("AttuneService");
    const auto& method = *service.method(static_cast<int>(mutator_.Below(service.method_count())));
    const std::unique_ptr<google::protobuf::Message> message(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.input_type())->New());
    for (int i = 0; i < 3; ++i) mutator_.Mutate(*message);
    std::string bytes = message->SerializePartialAsString(), response;
    if (mutator_.Chance(0.5)) mutator_.MutateBytes(bytes);
    const grpc::Status status = caller_->Call(method, bytes, &response);
    if (!method.server_streaming()) Judge(method.name(), status);
  }

  void Explain() {
    v1::ExplainRequest request;
    *request.mutable_best()->mutable_problem() = Problem();
    v1::ExplainResponse response;
    Call("Explain", &Stub::Explain, request, &response);
    v1::PreflightRequest preflight;
    *preflight.mutable_problem() = Problem();
    v1::PreflightResponse said;
    Call("Preflight", &Stub::Preflight, preflight, &said);
  }

  void ConnectAnew() {
    Connect();
    LookUp();
  }

  // A connection that says nothing, or half of something, and is dropped.
  void LeaveHalfOpen() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path(absl::StripPrefix(absl::GetFlag(FLAGS_server), "unix:"));
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      const std::string begun = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + mutator_.Bytes(mutator_.Below(64));
      (void)!send(fd, begun.data(), mutator_.Below(begun.size()), MSG_NOSIGNAL);
      absl::SleepFor(absl::Milliseconds(static_cast<int64_t>(mutator_.Below(2000))));
    }
    close(fd);
  }

  Common& common_;
  fuzz::Mutator mutator_;
  const int number_;
  std::unique_ptr<Stub> stub_;
  std::unique_ptr<RawCaller> caller_;
  std::string token_;
  bool fastest_ = false;
};

void Print(const char* when, const Footprint& now) {
  std::printf("%-12s %8.1f MiB, %4d descriptors, %3d threads, %2d processes, %2d locks\n", when, now.mib,
              now.descriptors, now.threads, now.processes, now.locks);
  std::fflush(stdout);
}

double MeanMib(const std::vector<Footprint>& samples, size_t begin, size_t end) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += samples[i].mib;
  return sum / static_cast<double>(std::max<size_t>(1, end - begin));
}

// All clients at once, for so long. What the daemon had every few seconds.
std::vector<Footprint> RunClients(Common& common, pid_t pid, absl::Duration time) {
  std::vector<std::thread> threads;
  for (int i = 0; i < absl::GetFlag(FLAGS_clients); ++i) {
    threads.emplace_back([&common, i] { Client(common, i).Run(); });
  }
  std::vector<Footprint> samples;
  const absl::Time begin = absl::Now();
  for (absl::Time next = begin + kSample; next <= begin + time; next += kSample) {
    absl::SleepFor(next - absl::Now());
    samples.push_back(FootprintOf(pid));
    if (samples.size() % 12 == 0) Print(absl::StrCat(samples.size() / 12, " min").c_str(), samples.back());
  }
  common.stop = true;
  for (std::thread& thread : threads) thread.join();
  return samples;
}

// Waits until the daemon has let go of what its clients left; what it then has.
Footprint AwaitQuiet(pid_t pid, const Footprint& before) {
  const absl::Time end = absl::Now() + kQuiet;
  while (true) {
    const Footprint now = FootprintOf(pid);
    const bool quiet = now.descriptors <= before.descriptors + kSpareDescriptors && now.processes <= before.processes &&
                       now.locks <= before.locks;
    if (quiet || absl::Now() > end) return now;
    absl::SleepFor(absl::Seconds(1));
  }
}

int Soak() {
  const pid_t pid = absl::GetFlag(FLAGS_pid);
  Common warm, common;
  RunClients(warm, pid, kWarmUp);
  absl::SleepFor(kWarmUp);
  const Footprint before = FootprintOf(pid);
  Print("warm, idle", before);
  Bystander bystander(absl::GetFlag(FLAGS_server));
  const std::vector<Footprint> samples = RunClients(common, pid, absl::GetFlag(FLAGS_time));
  bystander.Stop();
  bystander.Print();
  if (bystander.failed() > 0) ++common.wrong["another caller was not answered"];
  const Footprint after = AwaitQuiet(pid, before);
  Print("afterwards", after);
  common.look_ups.Print("look-ups");
  common.pages.Print("pages of trials");
  std::printf("calls: %lld by %d clients\n", static_cast<long long>(common.calls), absl::GetFlag(FLAGS_clients));

  const size_t third = samples.size() / 3;
  const double first = MeanMib(samples, 0, third), last = MeanMib(samples, samples.size() - third, samples.size());
  std::printf("memory: %.1f MiB in the first third, %.1f MiB in the last\n", first, last);
  if (after.mib == 0) ++common.wrong["the daemon is gone"];
  if (last > first * (1 + absl::GetFlag(FLAGS_most_growth))) ++common.wrong["the daemon's memory grew"];
  if (after.descriptors > before.descriptors + kSpareDescriptors) ++common.wrong["descriptors are left"];
  if (after.processes > before.processes) ++common.wrong["processes are left"];
  if (after.locks > before.locks) ++common.wrong["locks are left"];
  for (const auto& [what, count] : common.wrong) std::printf("WRONG: %s (%d)\n", what.c_str(), count);
  std::printf(common.wrong.empty() ? "fine\n" : "FAILED\n");
  return common.wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return attune::Soak();
}
