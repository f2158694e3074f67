// A whole tuner over fakes: one device, a family of three compile-time by two launch-time values, reference and floor.
#ifndef ATTUNE_SERVER_JOBS_TESTING_TUNER_FIXTURE_H_
#define ATTUNE_SERVER_JOBS_TESTING_TUNER_FIXTURE_H_

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/jobs/tuner.h"
#include "server/store/testing/fake_store.h"
#include "server/supervisor/testing/fake_workers.h"

namespace attune::jobs {

inline std::shared_ptr<const space::Family> MakeFamily(const std::string& manifest, const std::string& hash) {
  auto family = std::make_shared<space::Family>();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(manifest, &family->manifest));
  family->sources = {{"kernel.cu", "// nothing"}};
  family->source_hash = hash;
  return family;
}

// Variants BLOCK 16, 32, 64 by SPLITS 1, 2; only for seq_q up to 1024.
inline std::shared_ptr<const space::Family> SearchFamily(const std::string& hash = "source one",
                                                         const std::string& blocks = "16, 32, 64") {
  return MakeFamily(absl::StrCat(R"(
    name: "tiles" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    parameters { name: "BLOCK" values: [)",
                                 blocks, R"(] binding: BINDING_COMPILE_TIME guess: 32 }
    parameters { name: "SPLITS" values: [1, 2] binding: BINDING_LAUNCH_TIME guess: 1 }
    problem_limits { expr: "seq_q <= 1024" reason: "seq_q at most 1024" }
    launches { entry: "attention" grid_x: "ceil_div(seq_q, BLOCK) * SPLITS" block_x: "128" main: true }
    deterministic: true)"),
                    hash);
}

inline std::vector<std::shared_ptr<const space::Family>> Families(std::shared_ptr<const space::Family> search) {
  return {std::move(search),
          MakeFamily(R"(
    name: "reference" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    parameters { name: "PLAIN" values: [0, 1] binding: BINDING_COMPILE_TIME }
    launches { entry: "reference" grid_x: "seq_q" block_x: "128" main: true } role: ROLE_REFERENCE)",
                     "reference"),
          MakeFamily(R"(
    name: "floor" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    launches { entry: "empty" grid_x: "1" block_x: "32" main: true } role: ROLE_FLOOR)",
                     "floor")};
}

inline v1::Device FakeDevice() {
  v1::Device device;
  device.set_id("cuda:0");
  device.set_backend(v1::BACKEND_CUDA);
  device.set_driver("580.1");
  device.set_target("sm_89");
  device.set_fingerprint("an L4");
  device.set_compute_units(58);
  device.set_warp_size(32);
  device.set_max_threads_per_block(1024);
  device.set_max_warps_per_sm(48);
  device.set_max_blocks_per_sm(24);
  device.set_registers_per_sm(65536);
  device.set_max_registers_per_thread(255);
  device.set_shared_bytes_per_block(101376);
  device.set_shared_bytes_per_sm(102400);
  device.set_l2_bytes(48 << 20);
  device.set_memory_bytes(int64_t{24} << 30);
  device.set_compute_capability(89);
  return device;
}

// "BLOCK/grid" of a candidate: its variant, seen from the device.
inline std::string Seen(const worker::v1::Candidate& candidate) {
  const std::string& code = candidate.artifact();
  const size_t at = code.find("-DBLOCK=");
  const std::string block = at == std::string::npos ? "?" : code.substr(at + 8, 2);
  return absl::StrCat(block, "/", candidate.recipe().launches(0).grid().x());
}

class TunerTest : public ::testing::Test {
 protected:
  // At seq_q 128: grids of BLOCK 16: 8 and 16; 32: 4 and 8; 64: 2 and 4.
  static constexpr char kProblem[] = "b1.h1.q128.d64.f16";

  TunerTest() { SetTimes({}); }

  // us by what Seen says; 100 for all others.
  void SetTimes(std::map<std::string, double> times) {
    device_.ScriptUs([times = std::move(times)](const worker::v1::Candidate& candidate) {
      const auto it = times.find(Seen(candidate));
      return it == times.end() ? 100.0 : it->second;
    });
  }

  Tuner& Start(std::vector<std::shared_ptr<const space::Family>> families = Families(SearchFamily())) {
    TunerOptions options;
    options.store = &store_;
    options.compiler = &pool_;
    options.devices = {{"cuda:0", &device_}};
    options.families = std::move(families);
    options.compile_ahead = 2;
    options.idle_release = absl::Hours(1);
    options.clock = clock_;
    options.promoted = [this](const v1::Incumbent& incumbent) {
      const std::lock_guard<std::mutex> lock(mutex_);
      promoted_.push_back(incumbent);
    };
    tuner_.reset();
    absl::StatusOr<std::unique_ptr<Tuner>> tuner = Tuner::Create(options);
    EXPECT_TRUE(tuner.ok()) << tuner.status();
    tuner_ = *std::move(tuner);
    return *tuner_;
  }

  static v1::TuneRequest TuneRequest(const std::string& problem = kProblem) {
    v1::TuneRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(problem));
    return request;
  }

  v1::Operation Await(const std::string& name) {
    return Await(name, [](const v1::Operation& operation) { return operation.done(); });
  }
  // Blocks until `wanted` is true of the operation, or it is done.
  v1::Operation Await(const std::string& name, const std::function<bool(const v1::Operation&)>& wanted) {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<v1::Operation> last;
    auto stop = tuner_->Watch(name, [&](const v1::Operation& operation) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!last.has_value() && (wanted(operation) || operation.done())) last = operation;
      changed.notify_all();
    });
    EXPECT_TRUE(stop.ok()) << stop.status();
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return last.has_value(); });
    }
    (*stop)();
    return *last;
  }
  v1::Operation AwaitStarted(const absl::StatusOr<v1::Operation>& started) {
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? Await(started->name()) : v1::Operation();
  }
  v1::Operation Tune(const v1::TuneRequest& request = TuneRequest()) { return AwaitStarted(tuner_->Tune(request)); }

  // Of each variant tried, how often.
  std::map<std::string, int> Tries(const std::string& problem = kProblem) {
    std::map<std::string, int> tries;
    for (const v1::Trial& trial : store_.trials()) {
      if (trial.problem_text() == problem) ++tries[trial.variant().text()];
    }
    return tries;
  }
  std::map<v1::Verdict, int> Verdicts() {
    std::map<v1::Verdict, int> verdicts;
    for (const v1::Trial& trial : store_.trials()) ++verdicts[trial.verdict()];
    return verdicts;
  }
  size_t promoted() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return promoted_.size();
  }

  // Blocks until the operation has come so far.
  void AwaitPhase(const std::string& name, v1::OperationProgress::Phase phase) {
    std::promise<void> reached;
    bool told = false;
    auto stop = tuner_->Watch(name, [&](const v1::Operation& operation) {
      if (operation.progress().phase() < phase || std::exchange(told, true)) return;
      reached.set_value();
    });
    ASSERT_TRUE(stop.ok()) << stop.status();
    reached.get_future().wait();
    (*stop)();
  }
  std::string Served(const std::string& problem = kProblem) {
    const absl::StatusOr<v1::Incumbent> served = store_.GetIncumbent(problem, "cuda:0", v1::POLICY_HOT);
    return served.ok() ? served->trial().variant().text() : std::string(served.status().message());
  }

  Clock clock_ = SteadyNow;
  store::FakeStore store_;
  supervisor::FakeCompilePool pool_;
  supervisor::FakeDeviceWorker device_{FakeDevice()};
  std::mutex mutex_;
  std::vector<v1::Incumbent> promoted_;
  std::unique_ptr<Tuner> tuner_;  // ends before what it uses
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_TESTING_TUNER_FIXTURE_H_
