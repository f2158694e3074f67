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
#include "server/forecast/shape_model.h"
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

// A forecast::ShapeModel of the tuned problems. Rules share one, so that it is fitted once.
class SharedModel {
 public:
  SharedModel(std::vector<std::string> columns, const attune::v1::Device& device)
      : columns_(std::move(columns)), device_(device) {}
  // Nothing, where it is what was learned last.
  void Learn(const std::vector<const TunedProblem*>& tuned);
  // As ShapeModel::Expect.
  std::vector<double> Expect(const Choices& choices) const;

 private:
  const std::vector<std::string> columns_;
  const attune::v1::Device device_;
  std::vector<const TunedProblem*> learned_;
  std::optional<forecast::ShapeModel> model_;
};

// Which variants a model chooses among: all that are recorded; or what the tuned problems found fastest, the ten best
// of each re-fitted, and the guess.
enum class Among { kAll, kNearWinners };
std::unique_ptr<AnswerRule> ModelRule(Among among, std::shared_ptr<SharedModel> model, const Families& families,
                                      const attune::v1::Device& device);
// What a daemon answers that has tuned the problems (forecast::Forecaster): by the model, among near winners, where one
// of them is like it (forecast::IsLike), else as ServedRule.
std::unique_ptr<AnswerRule> ForecastRule(std::shared_ptr<SharedModel> model, const Families& families,
                                         const attune::v1::Device& device);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_ANSWER_RULE_H_
