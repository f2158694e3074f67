// How long a sweep takes on one card and on several of its class, of one host or of several with a card each. The cards
// are fakes whose trials take a given time, so that what is measured is how the queue shares the problems, on however
// few cores.
//
//   sweep_time --cards=4
//   sweep_time --cards=4 --unequal --rounds=5
//   sweep_time --cards=4 --fleet --trial=50ms
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/attune/problem.h"
#include "server/base/log.h"
#include "server/catalog/class_alias.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/daemon/tuning.h"
#include "server/store/testing/fake_store.h"
#include "server/supervisor/testing/fake_workers.h"

ABSL_FLAG(int, cards, 2, "cards that one is compared with");
ABSL_FLAG(int, problems, 40, "problems of the sweep");
ABSL_FLAG(absl::Duration, trial, absl::Milliseconds(10), "what a trial takes, on the average of all problems");
ABSL_FLAG(bool, unequal, false, "a problem's trials take as long as it has work: the longest twice the average");
ABSL_FLAG(bool, fleet, false, "each card is of a host of its own, and of them all do a sweep of the class");
ABSL_FLAG(int, rounds, 1, "of one card, then of several");

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

std::string ProblemText(int number) { return absl::StrCat("b1.h", number, ".q128.d64.f16"); }

// Of what a card is at.
absl::Duration TimeOfTrial(const supervisor::FakeDeviceWorker& card) {
  if (!absl::GetFlag(FLAGS_unequal)) return absl::GetFlag(FLAGS_trial);
  const double mean = 0.5 * (1 + absl::GetFlag(FLAGS_problems));
  return absl::GetFlag(FLAGS_trial) * (static_cast<double>(ParseProblem(card.prepared())->heads_q) / mean);
}

// A host with its cards.
struct Member {
  std::vector<std::unique_ptr<supervisor::FakeDeviceWorker>> workers;
  supervisor::FakeCompilePool pool;
  catalog::Host host = catalog::FakeHost();
  std::unique_ptr<catalog::Results> results;
  std::unique_ptr<Tuning> tuning;
};

std::unique_ptr<supervisor::FakeDeviceWorker> WorkerFor(int number) {
  auto worker = std::make_unique<supervisor::FakeDeviceWorker>(Card(number));
  supervisor::FakeDeviceWorker* const card = worker.get();
  card->ScriptUs([](const worker::v1::Candidate&) { return 100.0; });
  card->ScriptTrial([=](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    absl::SleepFor(TimeOfTrial(*card));
    return card->Good(request.candidate());
  });
  card->ScriptPlayOff([=](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
    absl::SleepFor(TimeOfTrial(*card) * request.candidates_size());
    return card->GoodPlayOff(request);
  });
  return worker;
}

// With the cards of these numbers.
std::unique_ptr<Member> MemberWith(const std::vector<int>& numbers) {
  auto member = std::make_unique<Member>();
  member->host.devices.clear();
  for (const int number : numbers) {
    member->workers.push_back(WorkerFor(number));
    member->host.devices.push_back(member->workers.back()->device());
  }
  catalog::NameClasses(member->host.devices);
  return member;
}

// `holder`: empty where it is alone.
void Start(Member& member, store::Store& store, const std::string& holder) {
  member.results = catalog::Results::Load(store, member.host).value();
  Tuning::Options options{.host = member.host, .store = store, .results = *member.results, .compiler = member.pool};
  for (const auto& worker : member.workers) options.devices[worker->device().id()] = worker.get();
  if (!holder.empty()) {
    options.holder = holder;
    options.lease = absl::Seconds(20);  // as daemons'
    options.shared = true;
  }
  member.tuning = Tuning::Create(options).value();
  if (!member.tuning->tuner().Resume().ok()) std::abort();
}

std::vector<std::unique_ptr<Member>> StartAll(int cards, store::Store& store) {
  std::vector<std::unique_ptr<Member>> members;
  if (!absl::GetFlag(FLAGS_fleet)) {
    std::vector<int> numbers(static_cast<size_t>(cards));
    std::iota(numbers.begin(), numbers.end(), 0);
    members.push_back(MemberWith(numbers));
    Start(*members.back(), store, "");
    return members;
  }
  const auto fleet = std::make_shared<catalog::Fleet>();
  std::vector<v1::Host> hosts;
  for (int i = 0; i < cards; ++i) {
    members.push_back(MemberWith({i}));
    members.back()->host.fleet = fleet;
    v1::Host& host = hosts.emplace_back();
    host.set_name(absl::StrCat("hosts/host", i));
    host.set_state(v1::Host::STATE_LIVE);
    *host.add_devices() = members.back()->host.devices.front();
  }
  fleet->Set(hosts);
  for (int i = 0; i < cards; ++i) Start(*members[static_cast<size_t>(i)], store, absl::StrCat("host", i));
  return members;
}

// In seconds.
double TimeOn(int cards) {
  store::FakeStore store;
  const std::vector<std::unique_ptr<Member>> members = StartAll(cards, store);
  v1::SweepRequest request;
  request.mutable_plan()->set_device_id(absl::GetFlag(FLAGS_fleet) ? members.front()->host.devices.front().class_alias()
                                                                   : "all");
  request.mutable_plan()->set_policy(v1::POLICY_HOT);
  v1::SweepShapes& shapes = *request.mutable_plan()->add_shapes();
  for (int i = 1; i <= absl::GetFlag(FLAGS_problems); ++i) shapes.add_problem(ProblemText(i));
  const auto begin = std::chrono::steady_clock::now();
  const v1::SweepReport report = Run(members.front()->tuning->tuner(), request);
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
  absl::ParseCommandLine(argc, argv);
  attune::SetLogLevel(attune::LogLevel::kError);  // writing it down takes time, too
  const int cards = absl::GetFlag(FLAGS_cards);
  std::vector<double> speedups;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    const double one = attune::sweep::TimeOn(1);
    const double several = attune::sweep::TimeOn(cards);
    std::printf("%d cards take %.3f of one card's time: %.2f times as fast\n", cards, several / one, one / several);
    speedups.push_back(one / several);
  }
  std::sort(speedups.begin(), speedups.end());
  std::printf("%d cards, %zu rounds: %.2f times as fast at worst, %.2f in the middle\n", cards, speedups.size(),
              speedups.front(), speedups[speedups.size() / 2]);
}
