// Two tuners, of two holders, that tune and sweep from one queue and lose their leases now and then: what
// two_holders_test.cc kills. Each line of its output is something that a client was told:
//   created JOB | trial TRIAL JOB | ended JOB STATE
// The log is among them.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/attune/problem.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/daemon/tuning.h"
#include "server/store/store.h"
#include "server/store/testing/unfinished.h"
#include "server/supervisor/testing/fake_workers.h"

namespace attune::sweep {
namespace {

constexpr absl::Duration kLease = absl::Milliseconds(300);
constexpr size_t kUnfinished = 6;

void Say(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(STDOUT_FILENO, whole.data(), whole.size()) < 0) _exit(2);
}

struct Holder {
  supervisor::FakeCompilePool pool;
  supervisor::FakeDeviceWorker device{catalog::FakeDevice()};
  catalog::Host host = catalog::FakeHost();
  std::unique_ptr<catalog::Results> results;
  std::unique_ptr<Tuning> tuning;

  Holder(store::Store& store, const std::string& name) {
    device.ScriptUs([](const worker::v1::Candidate&) { return 100.0; });
    device.ScriptTrial([this](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return device.Good(request.candidate());
    });
    results = catalog::Results::Load(store, host).value();
    tuning = Tuning::Create({.host = host,
                             .store = store,
                             .results = *results,
                             .compiler = pool,
                             .devices = {{"cuda:0", &device}},
                             .holder = name,
                             .lease = kLease})
                 .value();
  }
};

v1::TuneRequest TuneOf(const std::string& problem) {
  v1::TuneRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem(problem));
  request.set_device_id("cuda:0");
  request.set_policy(v1::POLICY_HOT);
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_EXHAUSTIVE);
  return request;
}

v1::SweepRequest SweepOf(const std::vector<std::string>& problems) {
  v1::SweepRequest request;
  request.mutable_plan()->set_device_id("cuda:0");
  request.mutable_plan()->set_policy(v1::POLICY_HOT);
  auto& shape = *request.mutable_plan()->add_shapes();
  for (const std::string& problem : problems) shape.add_problem(problem);
  return request;
}

// Another one each time, also after a restart: jobs on one problem would share their trials.
std::string NextProblem() {
  static int64_t number = absl::ToUnixMillis(absl::Now());
  ++number;
  return absl::StrCat("b1.h", 1 + number % 200, ".q", 32 * (1 + number / 200 % 30), ".d", 64 << (number / 6000 % 2),
                      ".f16");
}

void Start(jobs::Tuner& tuner, std::mt19937& random) {
  const absl::StatusOr<v1::Operation> started =
      random() % 3 == 0 ? tuner.Sweep(SweepOf({NextProblem(), NextProblem()})) : tuner.Tune(TuneOf(NextProblem()));
  if (!started.ok()) return;
  Say(absl::StrCat("created ", started->name()));
  (void)tuner.Watch(started->name(), [](const v1::Operation& operation) {
    if (operation.done())
      Say(absl::StrCat("ended ", operation.name(), " ", v1::Operation::State_Name(operation.state())));
  });
}

int Run(const std::string& directory) {
  std::atomic<int64_t> ahead = 0;  // of the store's clock, in ns
  const auto now = [&ahead] { return absl::Now() + absl::Nanoseconds(ahead.load()); };
  const absl::StatusOr<std::unique_ptr<store::Store>> store =
      store::OpenSqliteStore({.directory = directory, .now = now});
  if (!store.ok()) return 1;
  Holder one(**store, "one");
  Holder two(**store, "two");
  std::set<std::string> told;
  std::mt19937 random(std::random_device{}());
  if (!one.tuning->tuner().Resume().ok() || !two.tuning->tuner().Resume().ok()) return 1;
  while (true) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    // All leases run out at once: whoever asks first has the job.
    if (random() % 20 == 0) ahead += absl::ToInt64Nanoseconds(kLease);
    if (store::CountUnfinished((*store)->queue()) < kUnfinished)
      Start((random() % 2 == 0 ? one : two).tuning->tuner(), random);
    const auto page = (*store)->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 50, "");
    if (!page.ok()) return 1;
    for (const v1::Trial& trial : page->items) {
      if (told.insert(trial.name()).second) Say(absl::StrCat("trial ", trial.name(), " ", trial.job()));
    }
  }
}

}  // namespace
}  // namespace attune::sweep

int main(int argc, char** argv) {
  dup2(STDOUT_FILENO, STDERR_FILENO);
  return argc == 2 ? attune::sweep::Run(argv[1]) : 2;
}
