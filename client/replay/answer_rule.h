// Rules by which a problem is answered that was never tuned, from problems that were.
#ifndef ATTUNE_CLIENT_REPLAY_ANSWER_RULE_H_
#define ATTUNE_CLIENT_REPLAY_ANSWER_RULE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attune/v1/device.pb.h"
#include "client/replay/shape_model.h"
#include "client/replay/tuned_problem.h"
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

// Which variants a model chooses among: all that are recorded; those, but of problems that are like none of the tuned
// ones the guess (like: within nine octaves of likeness.h); or what the tuned problems found fastest, the ten best of
// each re-fitted, and the guess.
enum class Among { kAll, kAllOfLike, kNearWinners };
// Trees that learn how much slower than the best a variant is. Rules share a model, so that it learns once.
std::unique_ptr<AnswerRule> ModelRule(Among among, std::shared_ptr<ShapeModel> model, const Families& families,
                                      const attune::v1::Device& device);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_ANSWER_RULE_H_
