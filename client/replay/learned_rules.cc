// Candidates for what the daemon could answer by.
#include <algorithm>
#include <cmath>
#include <utility>

#include "client/replay/answer_rule.h"
#include "client/replay/likeness.h"
#include "server/catalog/answers/predicted_time.h"

namespace attune::replay {
namespace {

constexpr size_t kMostNeighbours = 5;

class NeighboursMean : public AnswerRule {
 public:
  std::string name() const override { return "mean of 5 neighbours"; }
  void Learn(const std::vector<const TunedProblem*>& tuned) override { tuned_ = tuned; }

  std::optional<RuleAnswer> Answer(const Choices& choices) const override {
    std::vector<const TunedProblem*> near = MostAlikeFirst(tuned_, choices.problem);
    if (near.size() > kMostNeighbours) near.resize(kMostNeighbours);
    std::optional<size_t> best;
    size_t most = 1;
    double least = 0;
    for (size_t i = 0; i < choices.variants.size(); ++i) {
      if (choices.useless[i]) continue;
      const auto [timed, mean] = MeanLoss(choices, i, near);
      if (timed < most || (best.has_value() && timed == most && mean >= least)) continue;
      best = i;
      most = timed;
      least = mean;
    }
    if (!best.has_value()) return std::nullopt;
    return RuleAnswer{choices.variants[*best], 0};
  }

 private:
  // By how many of the neighbours it was timed, and how much slower than their best it was (ln), near ones above all.
  static std::pair<size_t, double> MeanLoss(const Choices& choices, size_t variant,
                                            const std::vector<const TunedProblem*>& near) {
    const std::string text = choices.variants[variant].ToText();
    size_t timed = 0;
    double sum = 0;
    double weights = 0;
    for (const TunedProblem* one : near) {
      const auto it = one->choices.by_text.find(text);
      if (it == one->choices.by_text.end() || one->us[it->second] <= 0) continue;
      const double weight = std::exp(-Unlikeness(one->choices.problem, choices.problem) / 4);
      ++timed;
      sum += weight * std::log(one->us[it->second] / one->best_us());
      weights += weight;
    }
    return {timed, timed > 0 ? sum / weights : 0};
  }

  std::vector<const TunedProblem*> tuned_;
};

class Model : public AnswerRule {
 public:
  Model(Among among, std::shared_ptr<SharedModel> model, const attune::v1::Device& device)
      : among_(among), model_(std::move(model)), device_(device) {}

  std::string name() const override { return among_ == Among::kAll ? "model" : "model of near winners"; }
  void Learn(const std::vector<const TunedProblem*>& tuned) override {
    tuned_ = tuned;
    model_->Learn(tuned);
  }

  std::optional<RuleAnswer> Answer(const Choices& choices) const override {
    const std::optional<size_t> best = among_ == Among::kAll ? OfAll(choices) : OfNearWinners(choices);
    if (!best.has_value()) return std::nullopt;
    return RuleAnswer{choices.variants[*best], Predicted(choices, choices.variants[*best])};
  }

 private:
  std::optional<size_t> OfAll(const Choices& choices) const {
    std::optional<size_t> best;
    const std::vector<double> expected = model_->model().Expect(choices.problem, choices.variants);
    for (size_t i = 0; i < choices.variants.size(); ++i) {
      if (!choices.useless[i] && (!best.has_value() || expected[i] < expected[*best])) best = i;
    }
    return best;
  }
  std::optional<size_t> OfNearWinners(const Choices& choices) const {
    for (const space::Variant& variant : model_->model().Ranked(choices.problem)) {
      const auto it = choices.by_text.find(variant.ToText());
      if (it != choices.by_text.end() && !choices.useless[it->second]) return it->second;
    }
    return std::nullopt;
  }

  int64_t CtasOf(const space::Variant& variant, const Problem& problem) const {
    const auto recipe = space::RecipeFor(variant, problem, device_);
    return recipe.ok() ? space::GeometryOf(*recipe, attune::v1::Resources(), device_).ctas() : 0;
  }
  // From the fastest of the problem most alike, as the daemon does from the nearest.
  double Predicted(const Choices& choices, const space::Variant& variant) const {
    const TunedProblem& source = *MostAlikeFirst(tuned_, choices.problem).front();
    const Problem& timed = source.choices.problem;
    const space::Variant& fastest = source.choices.variants[source.fastest_first.front()];
    return catalog::PredictTime({choices.problem, CtasOf(variant, choices.problem)}, source.best_us(),
                                {timed, CtasOf(fastest, timed)}, device_)
        .us();
  }

  const Among among_;
  const std::shared_ptr<SharedModel> model_;
  const attune::v1::Device device_;
  std::vector<const TunedProblem*> tuned_;
};

class Forecasting : public AnswerRule {
 public:
  Forecasting(std::shared_ptr<SharedModel> model, const Families& families, const attune::v1::Device& device)
      : shared_(std::move(model)),
        model_(ModelRule(Among::kNearWinners, shared_, device)),
        served_(ServedRule(families, device)) {}

  std::string name() const override { return "forecast, else NEAREST, else HEURISTIC"; }
  void Learn(const std::vector<const TunedProblem*>& tuned) override {
    model_->Learn(tuned);
    served_->Learn(tuned);
  }
  std::optional<RuleAnswer> Answer(const Choices& choices) const override {
    return (shared_->model().Covers(choices.problem) ? model_ : served_)->Answer(choices);
  }

 private:
  const std::shared_ptr<SharedModel> shared_;
  const std::unique_ptr<AnswerRule> model_, served_;
};

}  // namespace

forecast::ClassModel ClassModelOf(const std::vector<const TunedProblem*>& tuned, const Families& families,
                                  const attune::v1::Device& device, size_t least) {
  std::vector<catalog::TunedProblem> problems;
  for (const TunedProblem* one : tuned) problems.push_back(LearnedOf(*one));
  return forecast::ClassModel(families, device, problems, least);
}

void SharedModel::Learn(const std::vector<const TunedProblem*>& tuned) {
  if (model_.has_value() && tuned == learned_) return;
  learned_ = tuned;
  model_.emplace(ClassModelOf(tuned, families_, device_, least_));
}

std::unique_ptr<AnswerRule> ForecastRule(std::shared_ptr<SharedModel> model, const Families& families,
                                         const attune::v1::Device& device) {
  return std::make_unique<Forecasting>(std::move(model), families, device);
}

std::unique_ptr<AnswerRule> NeighboursMeanRule() { return std::make_unique<NeighboursMean>(); }

std::unique_ptr<AnswerRule> ModelRule(Among among, std::shared_ptr<SharedModel> model,
                                      const attune::v1::Device& device) {
  return std::make_unique<Model>(among, std::move(model), device);
}

}  // namespace attune::replay
