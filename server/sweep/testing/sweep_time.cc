// How long a sweep takes on one card and on two of its class. The cards are fakes whose trials take a given time, so
// that what is measured is how the queue shares the problems, on however few cores.
//
//   sweep_time [PROBLEMS [MS_A_TRIAL]]
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/catalog/class_alias.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/daemon/tuning.h"
#include "server/store/testing/fake_store.h"
#include "server/supervisor/testing/fake_workers.h"

namespace attune::sweep {
namespace {

v1::Device Card(int number) {
  v1::Device device = catalog::FakeDevice();
  device.set_id(absl::StrCat("cuda:", number));
  device.set_uuid(absl::StrCat("GPU-", number));
  return device;
}

v1::SweepReport Run(jobs::Tuner& tuner, const v1::SweepRequest& request) {
  std::mutex mutex;
  std::condition_variable changed;
  v1::Operation last;
  const std::string name = tuner.Sweep(request)->name();
  const auto stop = tuner.Watch(name, [&](const v1::Operation& operation) {
    const std::lock_guard<std::mutex> lock(mutex);
    last = operation;
    changed.notify_all();
  });
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&last] { return last.done(); });
  return last.sweep();
}

// In seconds.
double TimeOn(int cards, int problems, std::chrono::milliseconds trial) {
  store::FakeStore store;
  supervisor::FakeCompilePool pool;
  std::vector<std::unique_ptr<supervisor::FakeDeviceWorker>> workers;
  std::map<std::string, supervisor::DeviceWorker*> devices;
  catalog::Host host = catalog::FakeHost();
  host.devices.clear();
  for (int i = 0; i < cards; ++i) {
    workers.push_back(std::make_unique<supervisor::FakeDeviceWorker>(Card(i)));
    supervisor::FakeDeviceWorker* const card = workers.back().get();
    card->ScriptUs([](const worker::v1::Candidate&) { return 100.0; });
    card->ScriptTrial([=](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
      std::this_thread::sleep_for(trial);
      return card->Good(request.candidate());
    });
    card->ScriptPlayOff([=](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
      std::this_thread::sleep_for(trial * request.candidates_size());
      return card->GoodPlayOff(request);
    });
    devices[card->device().id()] = card;
    host.devices.push_back(card->device());
  }
  catalog::NameClasses(host.devices);
  const std::unique_ptr<catalog::Results> results = catalog::Results::Load(store, host).value();
  const std::unique_ptr<Tuning> tuning =
      Tuning::Create({.host = host, .store = store, .results = *results, .compiler = pool, .devices = devices}).value();
  v1::SweepRequest request;
  request.mutable_plan()->set_device_id("all");
  request.mutable_plan()->set_policy(v1::POLICY_HOT);
  v1::SweepShapes& shapes = *request.mutable_plan()->add_shapes();
  for (int i = 1; i <= problems; ++i) shapes.add_problem(absl::StrCat("b1.h", i, ".q128.d64.f16"));
  const auto begin = std::chrono::steady_clock::now();
  const v1::SweepReport report = Run(tuning->tuner(), request);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::map<std::string, int> by_card;
  for (const v1::SweepReport::Row& row : report.rows()) ++by_card[row.device_id()];
  std::printf("%d card%s: %.3f s, %lld trials;", cards, cards == 1 ? "" : "s", seconds,
              static_cast<long long>(report.trials()));
  for (const auto& [card, count] : by_card) std::printf(" %s %d problems", card.c_str(), count);
  std::printf("\n");
  return seconds;
}

}  // namespace
}  // namespace attune::sweep

int main(int argc, char** argv) {
  const int problems = argc > 1 ? std::atoi(argv[1]) : 40;
  const std::chrono::milliseconds trial(argc > 2 ? std::atoi(argv[2]) : 10);
  const double one = attune::sweep::TimeOn(1, problems, trial);
  const double two = attune::sweep::TimeOn(2, problems, trial);
  std::printf("two cards take %.3f of one card's time\n", two / one);
}
