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
#include "server/catalog/answers/derived_answer.h"
#include "server/catalog/families.h"
#include "server/catalog/tuning_key.h"
#include "server/forecast/relevance.h"
#include "server/forecast/shape_model.h"
#include "server/search/feature_columns.h"
#include "server/search/learning_strategy.h"

namespace attune::forecast {
namespace {

constexpr int kNice = 10;
constexpr size_t kWinners = 10;  // of each tuned problem

}  // namespace

struct Forecaster::State {
  struct Wanted {
    Problem problem;
    v1::Device device;
    v1::Policy policy;

    std::string Class() const { return absl::StrCat(device.fingerprint(), " ", v1::Policy_Name(policy)); }
    std::string Key() const { return absl::StrCat(ToText(problem), " ", Class()); }
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
      std::optional<catalog::Forecast> forecast = ForecastOf(wanted);
      lock.lock();
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
    std::string served;                                          // the incumbents that it was fitted to
    std::optional<absl::Duration> looked;                        // when somebody last looked whether these are served
    std::vector<std::shared_ptr<const space::Family>> families;  // of which something was timed
    std::vector<Problem> problems;
    std::vector<space::Variant> winners;  // kWinners of each problem, each once
    std::optional<search::FeatureColumns> columns;
    std::optional<ShapeModel> trees;  // nothing where too little was tuned
  };

  std::optional<catalog::Forecast> ForecastOf(const Wanted& wanted) {
    const Model& model = ModelFor(wanted);
    if (!model.trees.has_value()) return std::nullopt;
    const bool like = std::any_of(model.problems.begin(), model.problems.end(),
                                  [&](const Problem& tuned) { return IsLike(tuned, wanted.problem); });
    if (!like) return std::nullopt;
    std::vector<space::Variant> variants = CandidatesOf(model, wanted);
    std::vector<std::vector<double>> features;
    for (const space::Variant& variant : variants) {
      absl::StatusOr<std::vector<double>> row = model.columns->Of(variant, wanted.problem, wanted.device);
      features.push_back(row.ok() ? *std::move(row)
                                  : std::vector<double>(model.columns->names().size(), search::kMissing));
    }
    if (variants.empty()) return std::nullopt;
    const std::vector<double> expected = model.trees->Expect(wanted.problem, features);
    const auto best = static_cast<size_t>(std::min_element(expected.begin(), expected.end()) - expected.begin());
    return catalog::Forecast{std::move(variants[best]), variants.size(), model.problems.size()};
  }

  // What the tuned problems found fastest, re-fitted, and the guess, each once.
  std::vector<space::Variant> CandidatesOf(const Model& model, const Wanted& wanted) {
    std::vector<space::Variant> variants;
    std::set<std::string> texts;
    const auto add = [&](absl::StatusOr<space::Variant> variant) {
      if (variant.ok() && texts.insert(variant->ToText()).second) variants.push_back(*std::move(variant));
    };
    for (const space::Variant& winner : model.winners) {
      if (space::Applies(*winner.family, wanted.problem, wanted.device).ok()) {
        add(space::Refit(winner, wanted.problem, wanted.device));
      }
    }
    add(catalog::HeuristicVariant(model.families, wanted.problem, wanted.device));
    return variants;
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
    if (!served.ok()) {
      LogWarning("no new forecasts: the store cannot be read", {{"reason", served.status().message()}});
      model.looked = now;
      return model;
    }
    std::string names = "served:";
    for (const v1::Incumbent& incumbent : served->items) absl::StrAppend(&names, " ", incumbent.name());
    if (names != model.served) Fit(wanted, served->items, model);
    model.served = std::move(names);
    model.looked = now;
    return model;
  }

  void Fit(const Wanted& wanted, const std::vector<v1::Incumbent>& served, Model& model) {
    const auto families = catalog::FamiliesFor(state_.host.families, wanted.device.backend(), family::v1::ROLE_SEARCH);
    model = Model();
    model.columns.emplace(families);
    std::vector<TunedShape> shapes;
    std::set<std::string> timed;    // families
    std::set<std::string> winners;  // texts
    for (const v1::Incumbent& incumbent : served) {
      const absl::StatusOr<Problem> problem = ParseProblem(incumbent.problem_text());
      if (!problem.ok()) continue;
      Timed known = TimedOf(*problem, wanted, families, *model.columns);
      if (known.shape.rows.size() < ShapeModel::kLeastRows) continue;
      for (size_t i = 0; i < known.variants.size(); ++i) {
        timed.insert(known.variants[i].family->name());
        if (i < kWinners && winners.insert(known.variants[i].ToText()).second) {
          model.winners.push_back(known.variants[i]);
        }
      }
      model.problems.push_back(*problem);
      shapes.push_back(std::move(known.shape));
    }
    for (const auto& family : families) {
      if (timed.contains(family->name())) model.families.push_back(family);
    }
    if (shapes.size() < state_.options.least_shapes) return;
    model.trees = ShapeModel::Fit(model.columns->names(), wanted.device, shapes);
  }

  // A problem's right and timed variants, fastest first.
  struct Timed {
    std::vector<space::Variant> variants;
    TunedShape shape;
  };

  Timed TimedOf(const Problem& problem, const Wanted& wanted,
                const std::vector<std::shared_ptr<const space::Family>>& families,
                const search::FeatureColumns& columns) {
    Timed known;
    known.shape.problem = problem;
    catalog::TuningKey key;
    key.problem = problem;
    key.problem_text = ToText(problem);
    key.device = wanted.device;
    key.policy = wanted.policy;
    key.toolchain = catalog::Toolchain(state_.host, wanted.device.backend()).value_or("");
    absl::StatusOr<std::vector<v1::Trial>> trials = catalog::KnownToday(state_.store, key);
    if (!trials.ok()) return known;
    std::erase_if(*trials, [](const v1::Trial& trial) { return !search::OutcomeOf(trial).ok; });
    std::stable_sort(trials->begin(), trials->end(), [](const v1::Trial& a, const v1::Trial& b) {
      return search::OutcomeOf(a).us < search::OutcomeOf(b).us;
    });
    for (const v1::Trial& trial : *trials) {
      absl::StatusOr<space::Variant> variant = space::ParseVariant(trial.variant().text(), families);
      if (!variant.ok() || variant->family->source_hash != trial.dependencies().source_hash()) continue;
      absl::StatusOr<std::vector<double>> features = columns.Of(*variant, problem, wanted.device);
      if (!features.ok()) continue;
      known.shape.rows.push_back({*std::move(features), search::OutcomeOf(trial).us});
      known.variants.push_back(*std::move(variant));
    }
    return known;
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
