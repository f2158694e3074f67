// Rules by which a problem is answered that was never tuned, from problems that were.
#ifndef ATTUNE_CLIENT_REPLAY_ANSWER_RULE_H_
#define ATTUNE_CLIENT_REPLAY_ANSWER_RULE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attune/v1/device.pb.h"
#include "client/replay/tuned_problem.h"
#include "server/forecast/class_model.h"
#include "server/space/space.h"

namespace attune::replay {

struct RuleAnswer {
  space::Variant variant;
  double predicted_us = 0;  // 0: the rule does not say
};

class AnswerRule {
 public:
  virtual ~AnswerRule() = default;
  virtual std::string name() const = 0;
  // Forgets what it has learned before.
  virtual void Learn(const std::vector<const TunedProblem*>& tuned) = 0;
  // nullopt: it has none.
  virtual std::optional<RuleAnswer> Answer(const Choices& choices) const = 0;
};

// What the daemon answers with its own code, server/catalog/answers: the guess of the family of highest precedence;
// what the nearest problem is served; and the one where there is no other.
std::unique_ptr<AnswerRule> HeuristicRule(const Families& families, const attune::v1::Device& device);
std::unique_ptr<AnswerRule> NearestRule(const Families& families, const attune::v1::Device& device);
std::unique_ptr<AnswerRule> ServedRule(const Families& families, const attune::v1::Device& device);
// What a fresh install answers that was shipped with the problems' fastest variants, tuned on another model.
std::unique_ptr<AnswerRule> ShippedRule(const Families& families, const attune::v1::Device& device);

// The variant that the five most alike problems found fastest on average, of those that most of them have timed.
std::unique_ptr<AnswerRule> NeighboursMeanRule();

forecast::ClassModel ClassModelOf(const std::vector<const TunedProblem*>& tuned, const Families& families,
                                  const attune::v1::Device& device, size_t least = forecast::ShapeModel::kLeastRows);

// A forecast::ClassModel of the tuned problems. Rules share one, so that it is fitted once.
class SharedModel {
 public:
  // `least`: as ClassModel has it.
  SharedModel(Families families, const attune::v1::Device& device, size_t least = forecast::ShapeModel::kLeastRows)
      : families_(std::move(families)), device_(device), least_(least) {}
  // Nothing, where it is what was learned last.
  void Learn(const std::vector<const TunedProblem*>& tuned);
  const forecast::ClassModel& model() const { return *model_; }

 private:
  const Families families_;
  const attune::v1::Device device_;
  const size_t least_;
  std::vector<const TunedProblem*> learned_;
  std::optional<forecast::ClassModel> model_;
};

// Which variants a model chooses among: all that are recorded; or those of them that ClassModel::Ranked has.
enum class Among { kAll, kNearWinners };
std::unique_ptr<AnswerRule> ModelRule(Among among, std::shared_ptr<SharedModel> model,
                                      const attune::v1::Device& device);
// What a daemon answers that has tuned the problems (forecast::Forecaster): by the model, among near winners, where one
// of them is like it (ClassModel::Covers), else as ServedRule.
std::unique_ptr<AnswerRule> ForecastRule(std::shared_ptr<SharedModel> model, const Families& families,
                                         const attune::v1::Device& device);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_ANSWER_RULE_H_
