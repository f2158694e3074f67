// A whole tuner, wired as the daemon wires it, over fakes: store, compile pool, device worker and host.
#ifndef ATTUNE_SERVER_JOBS_TESTING_TUNER_FIXTURE_H_
#define ATTUNE_SERVER_JOBS_TESTING_TUNER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
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
#include "server/catalog/class_alias.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/daemon/tuning.h"
#include "server/jobs/tuner.h"
#include "server/store/testing/fake_store.h"
#include "server/supervisor/testing/fake_workers.h"

namespace attune::jobs {

using catalog::FakeDevice;
using catalog::Families;
using catalog::MakeFamily;
using catalog::SearchFamily;

// "BLOCK/grid" of a candidate: its variant, seen from the device.
inline std::string Seen(const worker::v1::Candidate& candidate) {
  const std::string& code = candidate.artifact();
  const size_t at = code.find("-DBLOCK=");
  const std::string block = at == std::string::npos ? "?" : code.substr(at + 8, 2);
  return absl::StrCat(block, "/", candidate.recipe().launches(0).grid().x());
}

class TunerTest : public ::testing::Test {
 protected:
  static constexpr std::chrono::seconds kPatience{60};  // with what takes milliseconds
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

  Tuner& Start(std::vector<std::shared_ptr<const space::Family>> families = Families(SearchFamily()),
               absl::Duration idle_release = absl::Hours(1)) {
    tuner_ = nullptr;
    tuning_.reset();
    host_ = catalog::FakeHost(std::move(families));
    host_.devices = {device_.device()};
    std::map<std::string, supervisor::DeviceWorker*> workers = {{"cuda:0", &device_}};
    for (supervisor::FakeDeviceWorker* worker : others_) {
      host_.devices.push_back(worker->device());
      workers[worker->device().id()] = worker;
    }
    catalog::NameClasses(host_.devices);
    absl::StatusOr<std::unique_ptr<catalog::Results>> results = catalog::Results::Load(store_, host_);
    EXPECT_TRUE(results.ok()) << results.status();
    results_ = *std::move(results);
    loaded_ = results_->version();
    absl::StatusOr<std::unique_ptr<Tuning>> tuning = Tuning::Create({.host = host_,
                                                                     .store = store_,
                                                                     .results = *results_,
                                                                     .compiler = pool_,
                                                                     .devices = std::move(workers),
                                                                     .compile_ahead = 2,
                                                                     .idle_release = idle_release,
                                                                     .lease = lease_,
                                                                     .clock = clock_,
                                                                     .tools = tools_,
                                                                     .profile_time = absl::Minutes(2),
                                                                     .models = models_});
    EXPECT_TRUE(tuning.ok()) << tuning.status();
    tuning_ = *std::move(tuning);
    tuner_ = &tuning_->tuner();
    return *tuner_;
  }

  static v1::TuneRequest TuneRequest(const std::string& problem = kProblem) {
    v1::TuneRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(problem));
    // As the service normalises it.
    request.set_device_id("cuda:0");
    request.set_policy(v1::POLICY_HOT);
    request.mutable_strategy()->set_kind(v1::Strategy::KIND_EXHAUSTIVE);
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
      const bool in_time = changed.wait_for(lock, kPatience, [&] { return last.has_value(); });
      EXPECT_TRUE(in_time) << name << " has not come so far";
    }
    (*stop)();
    return last.value_or(v1::Operation());
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
  // How often answers have changed since Start.
  uint64_t changes() const { return results_->version() - loaded_; }

  // Blocks until the operation has come so far.
  void AwaitPhase(const std::string& name, v1::OperationProgress::Phase phase) {
    std::promise<void> reached;
    bool told = false;
    auto stop = tuner_->Watch(name, [&](const v1::Operation& operation) {
      if (operation.progress().phase() < phase || std::exchange(told, true)) return;
      reached.set_value();
    });
    ASSERT_TRUE(stop.ok()) << stop.status();
    EXPECT_EQ(reached.get_future().wait_for(kPatience), std::future_status::ready)
        << name << " has not come to phase " << v1::OperationProgress::Phase_Name(phase);
    (*stop)();
  }
  std::string Served(const std::string& problem = kProblem) {
    const absl::StatusOr<v1::Incumbent> served = store_.GetIncumbent(problem, "an L4", v1::POLICY_HOT);
    return served.ok() ? served->trial().variant().text() : std::string(served.status().message());
  }

  Clock clock_ = SteadyNow;
  absl::Duration lease_ = absl::Minutes(1);
  store::FakeStore store_;
  supervisor::FakeCompilePool pool_;
  std::vector<supervisor::FakeDeviceWorker*> others_;  // at Start, beside device_
  profile::Tools* tools_ = nullptr;                    // at Start
  forecast::Models* models_ = nullptr;                 // at Start
  supervisor::FakeDeviceWorker device_{FakeDevice()};
  catalog::Host host_;
  std::unique_ptr<catalog::Results> results_;
  uint64_t loaded_ = 0;
  std::unique_ptr<Tuning> tuning_;  // ends before what it uses
  Tuner* tuner_ = nullptr;          // its
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_TESTING_TUNER_FIXTURE_H_
