#include "server/supervisor/compile_pool.h"

// One thread a compile worker process: it takes a job, waits for the answer, and replaces the process when it had to
// be killed.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/proto_time.h"
#include "server/base/sha256.h"
#include "server/supervisor/back_off.h"
#include "server/supervisor/connection.h"
#include "server/supervisor/probe.h"
#include "server/supervisor/tries.h"
#include "server/supervisor/worker_options.h"

namespace attune::supervisor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr absl::Duration kLongestBackOff = absl::Seconds(30);

worker::v1::CompileResponse CompileOf(v1::Verdict verdict, absl::string_view log) {
  worker::v1::CompileResponse response;
  response.set_verdict(verdict);
  response.set_log(std::string(log));
  return response;
}

class CompilePoolImpl : public CompilePool {
 public:
  CompilePoolImpl(const WorkerOptions& options, const HostDescription& host)
      : options_(options), arguments_(WorkerArguments("compile", options)), backends_(host.backends) {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    slots_.resize(options.compile_workers > 0 ? options.compile_workers : cores);
    for (Slot& slot : slots_) slot.thread = std::thread([this, &slot] { Serve(slot); });
  }

  ~CompilePoolImpl() override {
    Shutdown();
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    for (Slot& slot : slots_) slot.thread.join();
  }

  void Shutdown() override {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (Slot& slot : slots_) {
      if (slot.connection != nullptr) slot.connection->Kill();
    }
    changed_.notify_all();
  }

  void Submit(worker::v1::CompileRequest request, int priority, Done done) override {
    std::string identity = Sha256(request.SerializeAsString());
    std::lock_guard lock(mutex_);
    const auto [it, fresh] = waiting_.try_emplace(identity);
    Waiting& waiting = it->second;
    waiting.done.push_back(std::move(done));
    if (!fresh) return Hasten(waiting, priority);
    waiting.place = Place{-int64_t{priority}, submitted_++};
    queue_.emplace(*waiting.place, Job{std::move(request), std::move(identity)});
    changed_.notify_all();
  }

  absl::StatusOr<std::string> Toolchain(v1::Backend backend) override {
    std::string reason = "this build has no such backend";
    for (const v1::BackendStatus& status : backends_) {
      if (status.backend() != backend) continue;
      if (!status.compiler().empty()) return status.compiler();
      reason = status.reason();
    }
    return absl::UnavailableError(absl::StrCat(v1::Backend_Name(backend), " has no compiler here: ", reason));
  }

  int size() const override { return static_cast<int>(slots_.size()); }

 private:
  using Place = std::pair<int64_t, int64_t>;  // negated priority, order of arrival
  struct Job {
    worker::v1::CompileRequest request;
    std::string identity;
  };
  // All that asked for one compile.
  struct Waiting {
    std::vector<Done> done;
    std::optional<Place> place;  // in the queue; nullopt while it is compiled
  };
  struct Slot {
    std::thread thread;
    // Made and destroyed by `thread`; set and cleared under mutex_ so that the destructor may kill it.
    std::unique_ptr<Connection> connection;
  };

  void Serve(Slot& slot) {
    while (std::optional<Job> job = Take(slot)) {
      absl::StatusOr<worker::v1::CompileResponse> response = absl::CancelledError("the compile pool is shut down");
      const absl::Time begin = absl::Now();
      if (!Stopping()) response = Compile(slot, job->request);
      if (response.ok()) {
        SetTimestamp(begin, response->mutable_begin());
        response->set_worker(static_cast<int>(&slot - slots_.data()));
      }
      // The verdict of a process that was killed to stop is none.
      if (Stopping()) response = absl::CancelledError("the compile pool is shut down");
      Count(response);
      const std::vector<Done> all = Leave(slot, job->identity);
      std::for_each(all.begin(), all.end() - 1, [&response](const Done& done) { done(response); });
      all.back()(std::move(response));
    }
    Disconnect(slot);
  }

  void Count(const absl::StatusOr<worker::v1::CompileResponse>& response) const {
    if (options_.metrics == nullptr || absl::IsCancelled(response.status())) return;
    options_.metrics->Compiled(response.ok() ? response->verdict() : v1::VERDICT_LOST,
                               response.ok() ? response->compile_ms() : 0);
  }

  // Moves a compile forward that somebody now asks for with a higher priority.
  void Hasten(Waiting& waiting, int priority) {
    if (!waiting.place.has_value() || -int64_t{priority} >= waiting.place->first) return;
    auto job = queue_.extract(*waiting.place);
    waiting.place->first = -int64_t{priority};
    job.key() = *waiting.place;
    queue_.insert(std::move(job));
  }

  // Whom to tell of a compile that has ended; who asks from now on has it compiled again, by the same worker if it
  // lives.
  std::vector<Done> Leave(const Slot& slot, const std::string& identity) {
    std::lock_guard lock(mutex_);
    idle_ += slot.connection != nullptr;
    return std::move(waiting_.extract(identity).mapped().done);
  }

  bool Stopping() {
    std::lock_guard lock(mutex_);
    return stopping_;
  }

  // The next job, to be cancelled after Shutdown; nothing once the destructor has begun and none is left. A slot
  // without a worker leaves jobs to those that have one and nothing to do. While workers do not start, it leaves them
  // to all the others; when no worker runs at all it takes them to fail.
  std::optional<Job> Take(Slot& slot) {
    std::unique_lock lock(mutex_);
    const bool has_worker = slot.connection != nullptr;  // idle since Leave
    const auto no_longer_idle = absl::MakeCleanup([this, has_worker] { idle_ -= has_worker; });
    while (true) {
      const bool leave = !stopping_ && !has_worker;
      const bool to_idle = leave && queue_.size() <= static_cast<size_t>(idle_);
      const bool to_others = leave && running_ > 0 && Clock::now() < back_off_.retry_at();
      if (!queue_.empty() && !to_idle && !to_others) {
        Job job = std::move(queue_.extract(queue_.begin()).mapped());
        waiting_.at(job.identity).place.reset();
        return job;
      }
      if (closing_) return std::nullopt;
      if (queue_.empty() || to_idle) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, back_off_.retry_at());
      }
    }
  }

  absl::StatusOr<worker::v1::CompileResponse> Compile(Slot& slot, worker::v1::CompileRequest& compile) {
    if (absl::StatusOr<std::string> toolchain = Toolchain(compile.backend()); !toolchain.ok()) {
      return toolchain.status();
    }
    worker::v1::Request request;
    request.mutable_compile()->Swap(&compile);
    Tries tries;
    CallResult result;
    do {
      if (absl::Status status = Connect(slot); !status.ok()) return status;
      result = slot.connection->Call(request, AtMost(request.compile().most_seconds(), options_.compile_timeout));
      if (IsSpent(result)) Disconnect(slot);
    } while (tries.Again(result) && !Stopping());
    switch (result.failure) {
      case CallFailure::kTimeout:
        return CompileOf(v1::VERDICT_TIMEOUT, absl::StrCat("compiling: ", result.detail, tries.Words()));
      case CallFailure::kDied:
        return CompileOf(v1::VERDICT_CRASHED, absl::StrCat("the compiler was ", result.detail, tries.Words()));
      case CallFailure::kGarbage:  // no code of ours runs there
      case CallFailure::kUnsent:
        return absl::InternalError(absl::StrCat("compile worker: ", result.detail, tries.Words()));
      case CallFailure::kNone:
        break;
    }
    if (absl::Status status = ErrorOf(result.response); !status.ok()) return status;
    return std::move(*result.response.mutable_compile());
  }

  absl::Status Connect(Slot& slot) {
    if (slot.connection != nullptr && slot.connection->Lives()) return absl::OkStatus();
    Disconnect(slot);
    {
      std::lock_guard lock(mutex_);
      if (Clock::now() < back_off_.retry_at()) return start_error_;
    }
    absl::StatusOr<std::unique_ptr<Connection>> connection =
        Connection::Start(options_.executable, arguments_,
                          options_.cage ? Environment::kScrubbed : Environment::kInherited, options_.metrics);
    if (!connection.ok()) return StartFailed(connection.status());
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return absl::CancelledError("the compile pool is shut down");
      slot.connection = *std::move(connection);
      ++running_;
    }
    if (absl::Status status = slot.connection->Describe().status(); !status.ok()) {
      Disconnect(slot);
      return StartFailed(status);
    }
    std::lock_guard lock(mutex_);
    back_off_.Started();
    return absl::OkStatus();
  }

  absl::Status StartFailed(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    back_off_.Failed();
    start_error_ = status;
    return status;
  }

  void Disconnect(Slot& slot) {
    std::unique_ptr<Connection> connection;
    std::lock_guard lock(mutex_);
    if (slot.connection == nullptr) return;
    connection = std::move(slot.connection);
    --running_;
    changed_.notify_all();
  }

  const WorkerOptions options_;
  const std::vector<std::string> arguments_;
  const std::vector<v1::BackendStatus> backends_;

  std::mutex mutex_;  // guards what follows, and the slots' connections
  std::condition_variable changed_;
  std::map<Place, Job> queue_;
  std::map<std::string, Waiting> waiting_;  // by identity
  int64_t submitted_ = 0;
  bool stopping_ = false;  // by Shutdown: jobs are cancelled
  bool closing_ = false;   // by the destructor: threads end when no job is left
  int running_ = 0;        // connections
  int idle_ = 0;           // of them, those that have nothing to do
  BackOff back_off_{kLongestBackOff};
  absl::Status start_error_;
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<CompilePool> MakeCompilePool(const WorkerOptions& options, const HostDescription& host) {
  return std::make_unique<CompilePoolImpl>(options, host);
}

}  // namespace attune::supervisor
