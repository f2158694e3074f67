// What a daemon under attack does to others: its memory, whether it lives, and how long a well-behaved caller waits.
#ifndef ATTUNE_TESTS_LOAD_DAEMON_WATCH_H_
#define ATTUNE_TESTS_LOAD_DAEMON_WATCH_H_

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "attune/v1/service.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "proto/attune/problem.h"

namespace attune {

// A line of /proc/PID/status in MiB, "VmRSS" or "VmHWM" (the most it ever was); 0 when the process is gone.
inline double MemoryMib(pid_t pid, const std::string& what) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == what + ":" && status >> kib) return kib / 1024;
  }
  return 0;
}

// Another caller, on a connection and a thread of its own: one call of each kind after the other, a few milliseconds
// between them, from construction to Stop.
class Bystander {
 public:
  explicit Bystander(const std::string& server) : thread_([this, server] { Run(server); }) {}
  ~Bystander() { Stop(); }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // After Stop. Calls that were not answered.
  int failed() const { return failed_; }
  void Print() {
    std::sort(waits_ms_.begin(), waits_ms_.end());
    if (waits_ms_.empty()) return;
    const auto quantile = [&](double q) { return waits_ms_[static_cast<size_t>(q * (waits_ms_.size() - 1))]; };
    const auto late = waits_ms_.end() - std::upper_bound(waits_ms_.begin(), waits_ms_.end(), kLateMs);
    std::printf(
        "another caller: %zu calls, p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, max %.1f ms, %zd over 100 ms, %d failed\n",
        waits_ms_.size(), quantile(0.5), quantile(0.99), quantile(0.999), waits_ms_.back(), static_cast<ssize_t>(late),
        failed_);
    for (const std::string& late_call : late_calls_) std::printf("  late: %s\n", late_call.c_str());
  }

 private:
  void Run(const std::string& server) {
    grpc::ChannelArguments own;  // not the connection of whoever floods
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub =
        v1::AttuneService::NewStub(grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), own));
    v1::GetBestRequest best;
    *best.mutable_problem() = ToProto(*ParseProblem("b1.h1.q128.d64.f16"));
    while (!stop_) {
      Time("Ping", [&](grpc::ClientContext* context) {
        v1::PingResponse response;
        return stub->Ping(context, v1::PingRequest(), &response);
      });
      Time("GetBest", [&](grpc::ClientContext* context) {
        v1::GetBestResponse response;
        return stub->GetBest(context, best, &response);
      });
      Time("ListOperations", [&](grpc::ClientContext* context) {
        v1::ListOperationsRequest request;
        request.set_page_size(1);
        v1::ListOperationsResponse response;
        return stub->ListOperations(context, request, &response);
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  template <typename Call>
  void Time(const char* kind, Call call) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    const auto begin = std::chrono::steady_clock::now();
    const grpc::Status status = call(&context);
    const auto end = std::chrono::steady_clock::now();
    waits_ms_.push_back(std::chrono::duration<double, std::milli>(end - begin).count());
    if (waits_ms_.back() > kLateMs && late_calls_.size() < kMostLateCalls) {
      char text[100];
      std::snprintf(text, sizeof(text), "%s, %.1f ms, %.1f s after the start", kind, waits_ms_.back(),
                    std::chrono::duration<double>(begin - start_).count());
      late_calls_.push_back(text);
    }
    // Nothing tuned and no family that guesses is an answer, too.
    if (!status.ok() && status.error_code() != grpc::StatusCode::NOT_FOUND) ++failed_;
  }

  static constexpr double kLateMs = 100;
  static constexpr size_t kMostLateCalls = 30;  // told of one by one

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<bool> stop_ = false;
  std::vector<double> waits_ms_;
  std::vector<std::string> late_calls_;
  int failed_ = 0;
  std::thread thread_;
};

}  // namespace attune

#endif  // ATTUNE_TESTS_LOAD_DAEMON_WATCH_H_
