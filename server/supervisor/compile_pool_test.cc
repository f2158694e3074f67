#include "server/supervisor/compile_pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/testing/processes.h"
#include "server/supervisor/probe.h"
#include "server/supervisor/worker_options.h"

namespace attune::supervisor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Result = absl::StatusOr<worker::v1::CompileResponse>;

// In which order compiles end that differ in their names.
class Order {
 public:
  Order(CompilePool& pool, const worker::v1::CompileRequest& request, size_t count)
      : pool_(pool), request_(request), count_(count) {}

  void Submit(const std::string& name, int priority) {
    worker::v1::CompileRequest request = request_;
    request.add_options(name);
    pool_.Submit(std::move(request), priority, [this, name](Result) {
      const std::lock_guard lock(mutex_);
      names_.push_back(name);
      if (names_.size() == count_) all_.set_value();
    });
  }
  // Once all have ended, of which there are `count`.
  std::vector<std::string> Await() {
    EXPECT_EQ(all_.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
    const std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  CompilePool& pool_;
  const worker::v1::CompileRequest request_;
  const size_t count_;
  std::mutex mutex_;
  std::vector<std::string> names_;
  std::promise<void> all_;
};

class CompilePoolTest : public ::testing::Test {
 protected:
  CompilePoolTest() {
    options_.executable = FAKE_WORKER;
    options_.compile_workers = 1;
    v1::BackendStatus cuda;
    cuda.set_backend(v1::BACKEND_CUDA);
    cuda.set_compiler("nvrtc 13.0");
    v1::BackendStatus opencl;
    opencl.set_backend(v1::BACKEND_OPENCL);
    opencl.set_reason("no OpenCL platform");
    host_.backends = {cuda, opencl};
  }
  ~CompilePoolTest() override {
    pool_.reset();
    EXPECT_TRUE(HasNoChildren());
  }

  CompilePool& pool() {
    if (pool_ == nullptr) pool_ = MakeCompilePool(options_, host_);
    return *pool_;
  }
  static worker::v1::CompileRequest Request(const std::string& what, v1::Backend backend = v1::BACKEND_CUDA) {
    worker::v1::CompileRequest request;
    request.set_backend(backend);
    request.set_target(what);
    return request;
  }
  std::future<Result> Submit(const std::string& what, v1::Backend backend = v1::BACKEND_CUDA) {
    auto promise = std::make_shared<std::promise<Result>>();
    pool().Submit(Request(what, backend), 0, [promise](Result result) { promise->set_value(std::move(result)); });
    return promise->get_future();
  }
  worker::v1::CompileResponse Compile(const std::string& what) {
    Result result = Submit(what).get();
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(worker::v1::CompileResponse());
  }
  absl::Status ErrorOf(const std::string& what) { return Submit(what).get().status(); }

  WorkerOptions options_;
  HostDescription host_;
  std::unique_ptr<CompilePool> pool_;
};

TEST_F(CompilePoolTest, Compiles) {
  EXPECT_EQ(Compile("ok").verdict(), v1::VERDICT_OK);
  EXPECT_EQ(pool().size(), 1);
}

TEST_F(CompilePoolTest, HasOneWorkerACoreUnlessTold) {
  options_.compile_workers = 0;
  EXPECT_EQ(pool().size(), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST_F(CompilePoolTest, LargeArtifactsComeWhole) { EXPECT_EQ(Compile("big").artifact().size(), 64u << 20); }

TEST_F(CompilePoolTest, ACompilerThatCrashesIsAVerdictAndTheNextJobRuns) {
  const worker::v1::CompileResponse crash = Compile("segv");
  EXPECT_EQ(crash.verdict(), v1::VERDICT_CRASHED);
  EXPECT_THAT(crash.log(), HasSubstr("killed by SIGSEGV"));
  EXPECT_EQ(Compile("ok").verdict(), v1::VERDICT_OK);
}

TEST_F(CompilePoolTest, AWorkerThatExitsIsAVerdictToo) {
  EXPECT_THAT(Compile("exit3").log(), HasSubstr("exited with 3"));
  EXPECT_THAT(Compile("partial").log(), HasSubstr("exited with 3"));
  EXPECT_EQ(Compile("ok").verdict(), v1::VERDICT_OK);
}

TEST_F(CompilePoolTest, WhatMayBeTheHostsFaultIsCompiledAgainInAFreshWorker) {
  options_.compile_timeout = absl::Seconds(3);
  TemporaryDirectory directory;
  for (const char* what : {"terminate", "stop", "hang"}) {
    EXPECT_EQ(Compile(absl::StrCat("once ", directory.path(), "/", what, " ", what)).verdict(), v1::VERDICT_OK) << what;
  }
}

TEST_F(CompilePoolTest, ACodeThatEndsTenFreshWorkersIsACrash) {
  const worker::v1::CompileResponse response = Compile("terminate");
  EXPECT_EQ(response.verdict(), v1::VERDICT_CRASHED);
  EXPECT_EQ(response.log(), "the compiler was killed by SIGTERM (10 tries, each in a fresh worker)");
  EXPECT_EQ(Compile("stop").log(), "the compiler was stopped by a signal (10 tries, each in a fresh worker)");
}

TEST_F(CompilePoolTest, AWorkerThatIsKilledWhileItStartsIsReplaced) {
  TemporaryDirectory directory;
  options_.emulate = absl::StrCat("once ", directory.path(), "/start terminate");
  EXPECT_EQ(Compile("ok").verdict(), v1::VERDICT_OK);
}

TEST_F(CompilePoolTest, AnIdleWorkerThatIsStoppedOrKilledIsGoneAtOnce) {
  for (const int signal : {SIGSTOP, SIGKILL}) {
    int child = 0;
    ASSERT_TRUE(absl::SimpleAtoi(Compile("child").artifact(), &child));
    ASSERT_EQ(kill(getpgid(child), signal), 0);  // the worker leads its group
    EXPECT_TRUE(AwaitNoChildren());
    EXPECT_EQ(Compile("segv").log(), "the compiler was killed by SIGSEGV") << "at its first try";
  }
  EXPECT_EQ(Compile("ok").verdict(), v1::VERDICT_OK);
}

TEST_F(CompilePoolTest, AWorkerIsStartedOnlyWhenAllOthersHaveWork) {
  options_.compile_workers = 4;
  std::set<pid_t> workers;
  for (int i = 0; i < 8; ++i) {
    int child = 0;
    ASSERT_TRUE(absl::SimpleAtoi(Compile("child").artifact(), &child));
    workers.insert(getpgid(child));
  }
  EXPECT_EQ(workers.size(), 1u);

  TemporaryDirectory directory;
  Gate gate(directory.path() + "/gate");
  std::future<Result> busy = Submit(gate.what());
  gate.Reached();
  int child = 0;
  ASSERT_TRUE(absl::SimpleAtoi(Compile("child").artifact(), &child));
  EXPECT_EQ(workers.count(getpgid(child)), 0u);
  gate.Open();
  EXPECT_TRUE(busy.get().ok());
}

TEST_F(CompilePoolTest, ACompilerThatHangsIsKilledAtTheDeadline) {
  options_.compile_timeout = absl::Seconds(1);
  const worker::v1::CompileResponse response = Compile("hang");
  EXPECT_EQ(response.verdict(), v1::VERDICT_TIMEOUT);
  EXPECT_THAT(response.log(), HasSubstr("no answer within 1s"));
  EXPECT_EQ(Compile("ok").verdict(), v1::VERDICT_OK);
}

TEST_F(CompilePoolTest, GarbageIsTheInfrastructuresFault) {
  TemporaryDirectory directory;
  EXPECT_EQ(ErrorOf("oversized").code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ErrorOf("garbage").code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Compile(absl::StrCat("once ", directory.path(), "/garbage garbage")).verdict(), v1::VERDICT_OK);
  EXPECT_EQ(Compile("ok").verdict(), v1::VERDICT_OK);
}

TEST_F(CompilePoolTest, AWorkersErrorIsPassedOnAndItLivesOn) {
  EXPECT_TRUE(absl::IsNotFound(ErrorOf("error")));
  EXPECT_EQ(Compile("ok").verdict(), v1::VERDICT_OK);
}

// Which is its own end: the next code has another worker, and is not blamed for that.
TEST_F(CompilePoolTest, AWorkerThatReportsAFaultIsReplacedBeforeTheNextJob) {
  for (const char* fault : {"aborted", "lost"}) {
    EXPECT_FALSE(ErrorOf(fault).ok());
    EXPECT_EQ(Compile("ok").verdict(), v1::VERDICT_OK) << fault;
  }
}

TEST_F(CompilePoolTest, ABackEndWithoutACompilerIsUnavailable) {
  EXPECT_EQ(*pool().Toolchain(v1::BACKEND_CUDA), "nvrtc 13.0");
  const absl::Status status = pool().Toolchain(v1::BACKEND_OPENCL).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no OpenCL platform"));
  EXPECT_TRUE(absl::IsUnavailable(Submit("ok", v1::BACKEND_OPENCL).get().status()));
}

TEST_F(CompilePoolTest, WorkersThatDieBeforeTheyAnswerAreUnavailable) {
  options_.emulate = "die";
  for (int i = 0; i < 100; ++i) {  // backing off, all but a few without a process started
    const absl::Status status = ErrorOf("ok");
    EXPECT_TRUE(absl::IsUnavailable(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("did not start up: exited with 7"));
  }
}

TEST_F(CompilePoolTest, AMissingExecutableIsUnavailable) {
  options_.executable = "/nonexistent/attune-worker";
  EXPECT_TRUE(absl::IsUnavailable(ErrorOf("ok")));
}

TEST_F(CompilePoolTest, HigherPrioritiesComeFirstAndEqualOnesInOrder) {
  TemporaryDirectory directory;
  Gate gate(directory.path() + "/gate");
  Order order(pool(), Request("ok"), 4);
  std::future<Result> first = Submit(gate.what());
  gate.Reached();
  order.Submit("low 1", -1);
  order.Submit("high 1", 5);
  order.Submit("low 2", -1);
  order.Submit("high 2", 5);
  gate.Open();
  EXPECT_THAT(order.Await(), ElementsAre("high 1", "high 2", "low 1", "low 2"));
}

TEST_F(CompilePoolTest, WhatIsQueuedOrRunningIsNotCompiledASecondTime) {
  TemporaryDirectory directory;
  Gate gate(directory.path() + "/gate");
  std::vector<std::future<Result>> running;
  running.push_back(Submit(gate.what()));
  gate.Reached();
  running.push_back(Submit(gate.what()));  // a second one would wait at the gate for ever
  std::vector<std::future<Result>> queued;
  for (int i = 0; i < 3; ++i) queued.push_back(Submit("child"));
  gate.Open();
  for (std::future<Result>& result : running) EXPECT_EQ(result.get()->verdict(), v1::VERDICT_OK);
  std::set<std::string> children;
  for (std::future<Result>& result : queued) children.insert(result.get()->artifact());
  EXPECT_EQ(children.size(), 1u);
  EXPECT_NE(Compile("child").artifact(), *children.begin()) << "once it has ended";
}

TEST_F(CompilePoolTest, ASecondCallersHigherPriorityHastensTheCompile) {
  TemporaryDirectory directory;
  Gate gate(directory.path() + "/gate");
  Order order(pool(), Request("ok"), 3);
  std::future<Result> first = Submit(gate.what());
  gate.Reached();
  order.Submit("a sweep's", 0);
  order.Submit("somebody's", 0);
  order.Submit("somebody's", 2);
  gate.Open();
  EXPECT_THAT(order.Await(), ElementsAre("somebody's", "somebody's", "a sweep's"));
}

TEST_F(CompilePoolTest, ShutdownCancelsWhatRunsAndWhatWaits) {
  TemporaryDirectory directory;
  Gate gate(directory.path() + "/gate");
  std::future<Result> running = Submit(gate.what());
  std::future<Result> waiting = Submit("ok");
  gate.Reached();
  pool().Shutdown();
  EXPECT_TRUE(absl::IsCancelled(running.get().status()));
  EXPECT_TRUE(absl::IsCancelled(waiting.get().status()));
  EXPECT_TRUE(absl::IsCancelled(ErrorOf("ok")));
  pool_.reset();
  EXPECT_TRUE(HasNoChildren());
}

TEST_F(CompilePoolTest, WhatAWorkerStartedDiesWithIt) {
  int child = 0;
  ASSERT_TRUE(absl::SimpleAtoi(Compile("child").artifact(), &child));
  pollfd ended = {static_cast<int>(syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
  ASSERT_GE(ended.fd, 0);
  EXPECT_EQ(poll(&ended, 1, 0), 0);
  pool_.reset();
  EXPECT_EQ(poll(&ended, 1, 60'000), 1);
  close(ended.fd);
}

}  // namespace
}  // namespace attune::supervisor
