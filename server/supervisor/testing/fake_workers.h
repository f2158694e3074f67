// Compile pool and device worker for tests: scripted, without processes.
#ifndef ATTUNE_SERVER_SUPERVISOR_TESTING_FAKE_WORKERS_H_
#define ATTUNE_SERVER_SUPERVISOR_TESTING_FAKE_WORKERS_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/problem.h"
#include "server/supervisor/compile_pool.h"
#include "server/supervisor/device_worker.h"

namespace attune::supervisor {

// An interval of 1 % around the median.
inline v1::Timing TimingOf(double us) {
  v1::Timing timing;
  timing.set_median_us(us);
  timing.set_low_us(us * 0.995);
  timing.set_high_us(us * 1.005);
  timing.set_min_us(us * 0.99);
  timing.set_samples(20);
  timing.set_settled(true);
  return timing;
}

// Compiles to the options' text, on one thread, in the order that CompilePool promises.
class FakeCompilePool : public CompilePool {
 public:
  using Compile = std::function<absl::StatusOr<worker::v1::CompileResponse>(const worker::v1::CompileRequest&)>;

  FakeCompilePool() : thread_([this] { Run(); }) {}
  ~FakeCompilePool() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
      held_ = false;
      changed_.notify_all();
    }
    thread_.join();
  }

  // What a request gives, before anything is submitted; by default Plain.
  void Script(Compile compile) { compile_ = std::move(compile); }
  static absl::StatusOr<worker::v1::CompileResponse> Plain(const worker::v1::CompileRequest& request) {
    worker::v1::CompileResponse response;
    response.set_verdict(v1::VERDICT_OK);
    response.set_artifact(absl::StrCat("code ", absl::StrJoin(request.options(), " ")));
    response.set_compile_ms(1);
    for (const std::string& name : request.entries()) {
      worker::v1::CompileResponse::Entry* entry = response.add_entries();
      entry->set_name(name);
      entry->set_registers(32);
    }
    return response;
  }
  static bool Has(const worker::v1::CompileRequest& request, const std::string& option) {
    return std::find(request.options().begin(), request.options().end(), option) != request.options().end();
  }

  // Compiles nothing until Go.
  void Hold() { SetHeld(true); }
  void Go() { SetHeld(false); }

  int compiles() const { return compiles_; }
  // Blocks until so many have been submitted in all; returns how many have.
  int AwaitSubmitted(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [&] { return submitted_ >= count; }))
        << "only " << submitted_ << " compiles were submitted";
    return submitted_;
  }
  // What was compiled, in order, by its number in the order of submission, from 0.
  std::vector<int> order() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return order_;
  }
  void set_toolchain(std::string toolchain) { toolchain_ = std::move(toolchain); }

  void Submit(worker::v1::CompileRequest request, int priority, Done done) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.emplace(std::pair(-int64_t{priority}, submitted_), Job{std::move(request), std::move(done), submitted_});
    ++submitted_;
    changed_.notify_all();
  }
  absl::StatusOr<std::string> Toolchain(v1::Backend backend) override { return toolchain_; }
  int size() const override { return 2; }
  void Shutdown() override {}

 private:
  void SetHeld(bool held) {
    const std::lock_guard<std::mutex> lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || (!held_ && !queue_.empty()); });
      if (queue_.empty()) return;
      auto [request, done, number] = std::move(queue_.begin()->second);
      queue_.erase(queue_.begin());
      if (!ending_) order_.push_back(number);
      lock.unlock();
      if (ending_) {
        done(absl::CancelledError("the pool is shut down"));
      } else {
        ++compiles_;
        done(compile_(request));
      }
      lock.lock();
    }
  }

  Compile compile_ = Plain;
  std::string toolchain_ = "fakec 1.0";
  struct Job {
    worker::v1::CompileRequest request;
    Done done;
    int number = 0;
  };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int64_t, int>, Job> queue_;  // by (negated priority, order of submission)
  std::vector<int> order_;
  int submitted_ = 0;
  bool held_ = false;
  std::atomic<bool> ending_ = false;
  std::atomic<int> compiles_ = 0;
  std::thread thread_;
};

// Answers from scripts, which run on the caller's thread; notes what it was asked.
class FakeDeviceWorker : public DeviceWorker {
 public:
  using Us = std::function<double(const worker::v1::Candidate&)>;
  using Trying = std::function<absl::StatusOr<worker::v1::TrialResponse>(const worker::v1::TrialRequest&)>;
  using Playing = std::function<absl::StatusOr<worker::v1::PlayOffResponse>(const worker::v1::PlayOffRequest&)>;

  explicit FakeDeviceWorker(v1::Device device) : device_(std::move(device)) {}

  // Before anything runs, or between jobs.
  void ScriptUs(Us us) { us_ = std::move(us); }
  void ScriptTrial(Trying trial) { trial_ = std::move(trial); }
  void ScriptAnchor(Trying anchor) { anchor_ = std::move(anchor); }
  void ScriptPlayOff(Playing play_off) { play_off_ = std::move(play_off); }  // each of its cycles
  void ScriptManyRuns(Playing many_runs) { many_runs_ = std::move(many_runs); }
  // What a candidate takes in joules, in spans of 1 % about that; null, or 0: the device counts none; negative: it
  // dies.
  void ScriptJoules(std::function<double(const worker::v1::Candidate&)> joules) { joules_ = std::move(joules); }
  void set_counts_energy(bool counts) { device_.set_counts_energy(counts); }
  void set_driver(const std::string& driver) { device_.set_driver(driver); }

  worker::v1::TrialResponse Good(const worker::v1::Candidate& candidate) const {
    worker::v1::TrialResponse response;
    response.set_verdict(v1::VERDICT_OK);
    *response.mutable_timing() = TimingOf(us_(candidate));
    response.mutable_accuracy()->set_cases(4);
    return response;
  }
  worker::v1::PlayOffResponse GoodPlayOff(const worker::v1::PlayOffRequest& request) const {
    worker::v1::PlayOffResponse response;
    for (const worker::v1::Candidate& candidate : request.candidates()) {
      worker::v1::TrialResponse& result = *response.add_results();
      result = Good(candidate);
      if (request.many_runs()) result.clear_timing();
      for (int round = 0; round < 9 && !request.many_runs(); ++round) result.add_rounds_us(us_(candidate));
    }
    return response;
  }

  worker::v1::PlayOffResponse Energies(const worker::v1::PlayOffRequest& request) const {
    worker::v1::PlayOffResponse response;
    for (const worker::v1::Candidate& candidate : request.candidates()) {
      worker::v1::TrialResponse& result = *response.add_results();
      result.set_verdict(v1::VERDICT_OK);
      const double joules = joules_ ? joules_(candidate) : 0;
      if (joules > 0) {
        result.mutable_energy()->set_joules(joules);
        result.mutable_energy()->set_low_joules(0.99 * joules);
        result.mutable_energy()->set_high_joules(1.01 * joules);
      }
      if (joules < 0) result.set_verdict(v1::VERDICT_CRASHED);
      if (joules <= 0) result.set_detail(joules < 0 ? "died" : "this device does not count its energy");
    }
    return response;
  }

  // "prepare <problem>", "trial <problem>", "anchor <problem>", "play-off <problem>" and "again <problem>" of its
  // further cycles, "many runs <problem>", "energy <problem>", "floor", "release", in order.
  std::vector<std::string> calls() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }
  int Count(const std::string& prefix) const {
    int count = 0;
    for (const std::string& call : calls()) count += call.rfind(prefix, 0) == 0 ? 1 : 0;
    return count;
  }

  // The problem that it works on, as text; for scripts.
  const std::string& prepared() const { return prepared_; }
  // How often inputs and references were made: asked for, or for a play-off on fresh data.
  int preparations() const { return preparations_; }

  void set_open(absl::Status open) { open_ = std::move(open); }
  // Whether another process is seen to hold it.
  void set_available(absl::Status available) {
    const std::lock_guard<std::mutex> lock(mutex_);
    available_ = std::move(available);
  }
  // As one that another process takes before this one opens it.
  void HoldAtOpen(absl::Status held) {
    open_ = std::move(held);
    held_at_open_ = true;
  }

  const v1::Device& device() const override { return device_; }
  absl::Status Open() override {
    const Call call(this);
    if (held_at_open_) set_available(open_);
    return open_;
  }
  absl::Status Available() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return available_;
  }
  absl::StatusOr<worker::v1::PrepareResponse> Prepare(const worker::v1::PrepareRequest& request) override {
    const Call call(this);
    absl::StatusOr<Problem> problem = FromProto(request.problem());
    EXPECT_TRUE(problem.ok());
    EXPECT_NE(request.exact().artifact(), request.plain().artifact());
    prepared_ = ToText(*problem);
    seed_ = request.seed();
    ++preparations_;
    Note("prepare " + prepared_);
    return worker::v1::PrepareResponse();
  }
  absl::StatusOr<worker::v1::TrialResponse> Trial(const worker::v1::TrialRequest& request) override {
    const Call call(this);
    Note((request.time_only() ? "anchor " : "trial ") + prepared_);
    if (request.time_only()) return anchor_ ? anchor_(request) : Good(request.candidate());
    return trial_ ? trial_(request) : Good(request.candidate());
  }
  absl::StatusOr<worker::v1::PlayOffResponse> PlayOff(const worker::v1::PlayOffRequest& request) override {
    const Call call(this);
    if (request.fresh_seed() != 0 && request.fresh_seed() != seed_) {
      seed_ = request.fresh_seed();
      ++preparations_;
    }
    Note((request.energy()      ? "energy "
          : request.many_runs() ? "many runs "
          : request.reload()    ? "again "
                                : "play-off ") +
         prepared_);
    if (request.energy()) return Energies(request);
    if (request.many_runs() && many_runs_) return many_runs_(request);
    if (request.many_runs()) return GoodPlayOff(request);
    return play_off_ ? play_off_(request) : GoodPlayOff(request);
  }
  absl::StatusOr<worker::v1::FloorResponse> Floor(const worker::v1::FloorRequest& request) override {
    const Call call(this);
    Note("floor");
    worker::v1::FloorResponse response;
    *response.mutable_timing() = TimingOf(1.5);
    return response;
  }
  void AbortWith(std::stop_token abort) override { abort_ = std::move(abort); }
  // Of the call in progress, for scripts.
  const std::stop_token& abort() const { return abort_; }
  void Release() override {
    const Call call(this);
    Note("release");
  }
  void Shutdown() override {}

 private:
  // Two calls at once would break the contract.
  struct Call {
    explicit Call(FakeDeviceWorker* worker) : worker(worker) { EXPECT_EQ(worker->inside_++, 0); }
    ~Call() { --worker->inside_; }
    FakeDeviceWorker* const worker;
  };
  void Note(std::string call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back(std::move(call));
  }

  v1::Device device_;
  absl::Status open_;
  bool held_at_open_ = false;
  absl::Status available_;  // guarded by mutex_
  Us us_ = [](const worker::v1::Candidate&) { return 100.0; };
  Trying trial_, anchor_;
  Playing play_off_, many_runs_;
  std::function<double(const worker::v1::Candidate&)> joules_;
  std::string prepared_ = "nothing";
  uint64_t seed_ = 0;
  std::atomic<int> preparations_ = 0;
  std::stop_token abort_;
  std::atomic<int> inside_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
};

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_TESTING_FAKE_WORKERS_H_
