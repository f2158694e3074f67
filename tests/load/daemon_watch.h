// What a daemon under attack does to others: its memory, whether it lives, and how long a well-behaved caller waits;
// and how long the machine keeps that caller from a core, which is none of the daemon's doing.
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
#include <utility>
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

// A thread that only sleeps and wakes, from construction to Stop: what it oversleeps, a thread of this process waited
// for a core.
class Sleeper {
 public:
  using Clock = std::chrono::steady_clock;

  Sleeper() : thread_([this] { Run(); }) {}
  ~Sleeper() { Stop(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // After Stop. What it overslept between two times, in milliseconds.
  double OversleptMs(Clock::time_point begin, Clock::time_point end) const {
    double sum = 0;
    for (const auto& [due, woke] : overslept_) sum += std::max(0.0, Ms(std::min(woke, end) - std::max(due, begin)));
    return sum;
  }
  void Print() const {
    double most = 0;
    for (const auto& [due, woke] : overslept_) most = std::max(most, Ms(woke - due));
    std::printf("a thread that only sleeps: %lld wake-ups, %zu late by more than %.0f ms, at most %.1f ms\n", wake_ups_,
                overslept_.size(), kNoticedMs, most);
  }

  static double Ms(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

 private:
  static constexpr double kNoticedMs = 2;

  void Run() {
    while (!stop_) {
      const Clock::time_point due = Clock::now() + std::chrono::milliseconds(1);
      std::this_thread::sleep_until(due);
      const Clock::time_point woke = Clock::now();
      ++wake_ups_;
      if (Ms(woke - due) > kNoticedMs) overslept_.emplace_back(due, woke);
    }
  }

  std::atomic<bool> stop_ = false;
  long long wake_ups_ = 0;
  std::vector<std::pair<Clock::time_point, Clock::time_point>> overslept_;  // when it was to wake, when it did
  std::thread thread_;
};

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
    sleeper_.Stop();
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
    sleeper_.Print();
    ptrdiff_t beyond = 0;
    size_t told = 0;
    for (const LateCall& call : late_calls_) {
      const double overslept = sleeper_.OversleptMs(call.begin, call.end);
      const double took = Sleeper::Ms(call.end - call.begin);
      if (took - overslept > kLateMs) ++beyond;
      if (told++ < kMostToldOf) {
        std::printf("  late: %s, %.1f ms, %.1f s after the start; the sleeping thread overslept %.1f ms of them\n",
                    call.kind, took, Sleeper::Ms(call.begin - start_) / 1000, overslept);
      }
    }
    std::printf("late by more than 100 ms beyond what the sleeping thread overslept: %td\n", beyond);
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
    const Sleeper::Clock::time_point begin = Sleeper::Clock::now();
    const grpc::Status status = call(&context);
    const Sleeper::Clock::time_point end = Sleeper::Clock::now();
    waits_ms_.push_back(Sleeper::Ms(end - begin));
    if (waits_ms_.back() > kLateMs) late_calls_.push_back({kind, begin, end});
    // Nothing tuned and no family that guesses is an answer, too.
    if (!status.ok() && status.error_code() != grpc::StatusCode::NOT_FOUND) ++failed_;
  }

  static constexpr double kLateMs = 100;
  static constexpr size_t kMostToldOf = 30;  // late calls, one by one

  struct LateCall {
    const char* kind;
    Sleeper::Clock::time_point begin;
    Sleeper::Clock::time_point end;
  };

  const Sleeper::Clock::time_point start_ = Sleeper::Clock::now();
  std::atomic<bool> stop_ = false;
  std::vector<double> waits_ms_;
  std::vector<LateCall> late_calls_;
  int failed_ = 0;
  Sleeper sleeper_;
  std::thread thread_;
};

}  // namespace attune

#endif  // ATTUNE_TESTS_LOAD_DAEMON_WATCH_H_
