#include "server/forecast/forecaster.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/catalog/families.h"
#include "server/catalog/tuning_key.h"
#include "server/search/learning_strategy.h"

namespace attune::forecast {
namespace {

constexpr int kNice = 10;

}  // namespace

struct Forecaster::State {
  struct Wanted {
    std::optional<Problem> problem;  // nothing: the model itself
    v1::Device device;
    v1::Policy policy;

    std::string Class() const { return absl::StrCat(device.fingerprint(), " ", v1::Policy_Name(policy)); }
    std::string Key() const { return absl::StrCat(problem.has_value() ? ToText(*problem) : "", " ", Class()); }
  };

  struct Known {
    std::optional<catalog::Forecast> forecast;
    absl::Duration looked;  // when it was found to be of what is served
    bool waiting = true;    // among `wanted`
  };

  State(store::Store& store, const catalog::Host& host, Options chosen) : options(chosen), store(store), host(host) {}

  const Options options;
  store::Store& store;
  const catalog::Host& host;

  std::mutex mutex;  // guards what follows up to the blank line
  std::condition_variable changed;
  std::deque<Wanted> wanted;
  std::unordered_map<std::string, Known> known;
  std::set<std::string> looking;                                     // classes whose model alone is among `wanted`
  std::map<std::string, std::shared_ptr<const ClassModel>> learned;  // of each class that was looked at
  bool working = false;
  bool stopped = false;

  std::atomic<uint64_t> version = 0;
};

// What the thread does; of its own are the models.
class Forecaster::Worker {
  using Wanted = State::Wanted;

 public:
  explicit Worker(State& state) : state_(state) {}

  void Run() {
    // Of this thread alone, on Linux.
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
    std::unique_lock<std::mutex> lock(state_.mutex);
    while (true) {
      state_.working = false;
      state_.changed.notify_all();
      state_.changed.wait(lock, [this] { return state_.stopped || !state_.wanted.empty(); });
      if (state_.stopped) return;
      const Wanted wanted = std::move(state_.wanted.front());
      state_.wanted.pop_front();
      state_.working = true;
      lock.unlock();
      const Model& model = ModelFor(wanted);
      std::optional<catalog::Forecast> forecast;
      if (model.learned != nullptr && wanted.problem.has_value()) forecast = ForecastOf(model, *wanted.problem);
      lock.lock();
      state_.learned[wanted.Class()] = model.learned;
      if (!wanted.problem.has_value()) state_.looking.erase(wanted.Class());
      const auto it = state_.known.find(wanted.Key());
      if (it == state_.known.end()) continue;
      State::Known& known = it->second;
      const auto text = [](const std::optional<catalog::Forecast>& of) { return of ? of->variant.ToText() : ""; };
      if (text(known.forecast) != text(forecast)) ++state_.version;
      known = {std::move(forecast), SteadyNow(), /*waiting=*/false};
    }
  }

 private:
  struct Model {
    std::string served;                         // the incumbents that it was fitted to
    std::optional<absl::Duration> looked;       // when somebody last looked whether these are served
    std::shared_ptr<const ClassModel> learned;  // null where too little was tuned
    size_t shipped = 0;                         // problems that it learned from, and were not tuned here
  };

  static std::optional<catalog::Forecast> ForecastOf(const Model& model, const Problem& problem) {
    if (!model.learned->Answers(problem)) return std::nullopt;
    std::vector<space::Variant> ranked = model.learned->Ranked(problem);
    if (ranked.empty()) return std::nullopt;
    return catalog::Forecast{std::move(ranked.front()), ranked.size(), model.learned->problems(), model.shipped};
  }

  // Fitted anew where something else is served than the last time.
  const Model& ModelFor(const Wanted& wanted) {
    Model& model = models_[wanted.Class()];
    const absl::Duration now = SteadyNow();
    if (model.looked.has_value() && now - *model.looked < state_.options.hold) return model;
    store::IncumbentFilter filter;
    filter.device_class = wanted.device.fingerprint();
    filter.policy = wanted.policy;
    const auto served =
        state_.store.ListIncumbents(filter, static_cast<int>(state_.options.most_shapes), /*page_token=*/"");
    model.looked = now;
    if (!served.ok()) {
      LogWarning("no new forecasts: the store cannot be read", {{"reason", served.status().message()}});
      return model;
    }
    std::string names = "served:";
    for (const v1::Incumbent& incumbent : served->items) absl::StrAppend(&names, " ", incumbent.name());
    if (names != model.served) Fit(wanted, served->items, model);
    model.served = std::move(names);
    return model;
  }

  void Fit(const Wanted& wanted, const std::vector<v1::Incumbent>& served, Model& model) {
    const auto families = catalog::FamiliesFor(state_.host.families, wanted.device.backend(), family::v1::ROLE_SEARCH);
    std::vector<catalog::TunedProblem> tuned;
    std::set<std::string> problems;
    const auto add = [&](catalog::TunedProblem one) {
      const bool room = tuned.size() < state_.options.most_shapes && one.variants.size() >= ShapeModel::kLeastRows;
      if (room && problems.insert(ToText(one.problem)).second) tuned.push_back(std::move(one));
    };
    for (const v1::Incumbent& incumbent : served) {
      const absl::StatusOr<Problem> problem = ParseProblem(incumbent.problem_text());
      if (problem.ok()) add(TunedHere(*problem, wanted, families));
    }
    const size_t here = tuned.size();
    for (const auto& shipped : catalog::ShippedFor(*state_.options.shipped, wanted.device, wanted.policy)) {
      if (!problems.contains(ToText(shipped.problem()))) add(shipped.Read(families));
    }
    model.learned = nullptr;
    model.shipped = tuned.size() - here;
    if (tuned.size() < state_.options.least_shapes) return;
    const absl::Duration began = SteadyNow();
    model.learned = std::make_shared<const ClassModel>(families, wanted.device, tuned);
    LogInfo("learned what to expect of shapes that nobody tuned",
            {{"device_class", wanted.device.fingerprint()},
             {"policy", Word(wanted.policy)},
             {"problems", tuned.size()},
             {"shipped", model.shipped},
             {"ms", absl::ToInt64Milliseconds(SteadyNow() - began)}});
  }

  catalog::TunedProblem TunedHere(const Problem& problem, const Wanted& wanted, const ClassModel::Families& families) {
    std::vector<space::Variant> variants;
    std::vector<double> us;
    catalog::TuningKey key;
    key.problem = problem;
    key.problem_text = ToText(problem);
    key.device = wanted.device;
    key.policy = wanted.policy;
    key.toolchain = catalog::Toolchain(state_.host, wanted.device.backend()).value_or("");
    absl::StatusOr<std::vector<v1::Trial>> trials = catalog::KnownToday(state_.store, key);
    if (!trials.ok()) return {};
    std::erase_if(*trials, [](const v1::Trial& trial) { return !search::OutcomeOf(trial).ok; });
    std::stable_sort(trials->begin(), trials->end(), [](const v1::Trial& a, const v1::Trial& b) {
      return search::OutcomeOf(a).us < search::OutcomeOf(b).us;
    });
    for (const v1::Trial& trial : *trials) {
      absl::StatusOr<space::Variant> variant = space::ParseVariant(trial.variant().text(), families);
      if (!variant.ok() || variant->family->source_hash != trial.dependencies().source_hash()) continue;
      us.push_back(search::OutcomeOf(trial).us);
      variants.push_back(*std::move(variant));
    }
    return catalog::LearnedOf(problem, variants, us);
  }

  State& state_;
  std::map<std::string, Model> models_;  // by class and policy
};

Forecaster::Forecaster(store::Store& store, const catalog::Host& host, Options options)
    : state_(std::make_unique<State>(store, host, options)), thread_([this] { Worker(*state_).Run(); }) {}

Forecaster::~Forecaster() {
  Shutdown();
  thread_.join();
}

std::optional<catalog::Forecast> Forecaster::Ask(const Problem& problem, const v1::Device& device, v1::Policy policy) {
  const State::Wanted wanted{problem, device, policy};
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto it = state_->known.find(wanted.Key());
  const bool fresh = it == state_->known.end();
  const bool due = !fresh && !it->second.waiting && SteadyNow() - it->second.looked >= state_->options.hold;
  const bool room = state_->wanted.size() < state_->options.most_waiting;
  if ((fresh || due) && room && !state_->stopped) {
    if (fresh && state_->known.size() >= state_->options.most_known) state_->known.clear();
    state_->known[wanted.Key()].waiting = true;
    state_->wanted.push_back(wanted);
    state_->changed.notify_all();
  }
  return fresh ? std::nullopt : it->second.forecast;
}

std::shared_ptr<const ClassModel> Forecaster::Model(const v1::Device& device, v1::Policy policy) {
  State::Wanted wanted{std::nullopt, device, policy};
  const std::string of = wanted.Class();
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->stopped && state_->looking.insert(of).second) {
    state_->wanted.push_front(std::move(wanted));
    state_->changed.notify_all();
  }
  const auto it = state_->learned.find(of);
  return it == state_->learned.end() ? nullptr : it->second;
}

uint64_t Forecaster::version() const { return state_->version; }

void Forecaster::Shutdown() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->stopped = true;
  state_->changed.notify_all();
}

void Forecaster::Settle() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->stopped || (state_->wanted.empty() && !state_->working); });
}

}  // namespace attune::forecast
