// A worker that dies, hangs, babbles or lies at each step of its protocol: the caller is told what happened or never
// notices, and the next call finds a worker that works.
#include <future>
#include <memory>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/testing/processes.h"
#include "server/supervisor/compile_pool.h"
#include "server/supervisor/device_worker.h"
#include "server/supervisor/probe.h"
#include "server/supervisor/worker_options.h"

namespace attune::supervisor {
namespace {

constexpr const char* kSteps[] = {"start", "compile", "prepare", "trial", "play-off", "floor"};
constexpr const char* kFaults[] = {"terminate", "segv",    "exit3", "stop",  "hang", "garbage",
                                   "oversized", "partial", "lie",   "other", "lost", "aborted"};

class ProtocolFaults : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  ProtocolFaults() {
    options_.executable = FAKE_WORKER;
    options_.compile_workers = 1;
    options_.lock_dir = directory_.path() + "/locks";
    options_.compile_timeout = options_.trial_timeout = options_.prepare_timeout = options_.play_off_timeout =
        absl::Seconds(1);
    device_.set_id("fake:0");
    host_.backends.emplace_back().set_backend(v1::BACKEND_CUDA);
    host_.backends.back().set_compiler("nvrtc 13.0");
  }
  ~ProtocolFaults() override {
    pool_.reset();
    worker_.reset();
    EXPECT_TRUE(HasNoChildren());
  }

  // OK when the answer is right; otherwise what the caller is told.
  absl::Status Call(const std::string& step, const std::string& what) {
    if (step == "compile") return Compile(what);
    if (worker_ == nullptr) worker_ = MakeDeviceWorker(options_, device_);
    worker::v1::PrepareRequest prepare;
    prepare.mutable_exact()->set_artifact(step == "prepare" ? what : "ok");
    if (absl::Status prepared = worker_->Prepare(prepare).status(); !prepared.ok()) return prepared;
    if (step == "trial") return Trial(what);
    if (step == "play-off") return PlayOff(what);
    if (step != "floor") return absl::OkStatus();
    worker::v1::FloorRequest floor;
    floor.set_artifact(what);
    return worker_->Floor(floor).status();
  }

  static absl::Status StatusOf(v1::Verdict verdict, const std::string& detail) {
    return verdict == v1::VERDICT_OK ? absl::OkStatus()
                                     : absl::AbortedError(absl::StrCat(v1::Verdict_Name(verdict), ": ", detail));
  }

  absl::Status Compile(const std::string& what) {
    if (pool_ == nullptr) pool_ = MakeCompilePool(options_, host_);
    worker::v1::CompileRequest request;
    request.set_backend(v1::BACKEND_CUDA);
    request.set_target(what);
    std::promise<absl::Status> promise;
    pool_->Submit(request, 0, [&promise](const absl::StatusOr<worker::v1::CompileResponse>& response) {
      promise.set_value(response.ok() ? StatusOf(response->verdict(), response->log()) : response.status());
    });
    return promise.get_future().get();
  }

  absl::Status Trial(const std::string& what) {
    worker::v1::TrialRequest request;
    request.mutable_candidate()->set_artifact(what);
    const absl::StatusOr<worker::v1::TrialResponse> response = worker_->Trial(request);
    return response.ok() ? StatusOf(response->verdict(), response->detail()) : response.status();
  }

  absl::Status PlayOff(const std::string& what) {
    worker::v1::PlayOffRequest request;
    request.add_candidates()->set_artifact(what);
    request.add_candidates()->set_artifact("ok");
    return worker_->PlayOff(request).status();
  }

  TemporaryDirectory directory_;
  WorkerOptions options_;
  v1::Device device_;
  HostDescription host_;
  std::unique_ptr<DeviceWorker> worker_;
  std::unique_ptr<CompilePool> pool_;
};

TEST_P(ProtocolFaults, AreToldOrUnnoticedAndOverWithTheNextCall) {
  const auto [step, fault] = GetParam();
  if (step == std::string("start") && fault == std::string("hang")) GTEST_SKIP() << "a minute";
  const std::string file = directory_.path() + "/once";
  const std::string once = absl::StrCat("once ", file, " ", fault);
  if (step == std::string("start")) options_.emulate = once;
  const absl::Status first = Call(step, once);
  EXPECT_EQ(access(file.c_str(), F_OK), 0) << "the fault was never injected";
  EXPECT_TRUE(first.ok() || first.message().size() > 10) << first;
  EXPECT_NE(first.code(), absl::StatusCode::kUnknown) << first;
  const absl::Status second = Call(step, "ok");
  EXPECT_TRUE(second.ok()) << second << "; before: " << first;
}

INSTANTIATE_TEST_SUITE_P(Step, ProtocolFaults,
                         ::testing::Combine(::testing::ValuesIn(kSteps), ::testing::ValuesIn(kFaults)),
                         [](const ::testing::TestParamInfo<ProtocolFaults::ParamType>& info) {
                           std::string name = absl::StrCat(std::get<0>(info.param), "_", std::get<1>(info.param));
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

}  // namespace
}  // namespace attune::supervisor
