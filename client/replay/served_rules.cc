// The daemon's own rules.
#include <set>
#include <utility>

#include "client/replay/answer_rule.h"
#include "server/catalog/answers/derived_answer.h"

namespace attune::replay {
namespace {

using catalog::Answer;
using catalog::AnswerPtr;

// Knows what the compiler has ruled out, and compiles nothing.
class KnownCode : public catalog::CodeSupply {
 public:
  KnownCode(const Choices& choices, const attune::v1::Device& device) {
    for (size_t i = 0; i < choices.variants.size(); ++i) {
      if (!choices.useless[i]) continue;
      const auto spec = space::SpecFor(choices.variants[i], choices.problem, device);
      if (spec.ok()) useless_.insert(spec->key);
    }
  }

  catalog::CodeState Ask(const AnswerPtr& /*answer*/) override { return {}; }
  catalog::CodeState AskForLost(const AnswerPtr& /*answer*/) override { return {}; }
  bool IsUseless(absl::string_view compile_key) const override { return useless_.contains(std::string(compile_key)); }
  void Condemn(absl::string_view compile_key, std::string /*why*/) override { useless_.emplace(compile_key); }
  uint64_t useless() const override { return useless_.size(); }
  void ForgetUseless() override { useless_.clear(); }
  uint64_t version() const override { return 0; }
  void Await(absl::string_view /*key*/, absl::Duration /*patience*/, std::function<void()> known) override { known(); }

 private:
  std::set<std::string> useless_;
};

enum class Tuned { kHere, kBeforeShipping };

// What would be served for a tuned problem, or was shipped for it: its fastest.
AnswerPtr ServedFor(const TunedProblem& tuned, Tuned where, const attune::v1::Device& device) {
  auto answer = std::make_shared<Answer>();
  const size_t fastest = tuned.fastest_first.front();
  answer->problem = tuned.choices.problem;
  answer->device_class = device.fingerprint();
  answer->variant = tuned.choices.variants[fastest];
  answer->resources = tuned.resources[fastest];
  const auto spec = space::SpecFor(*answer->variant, answer->problem, device);
  if (spec.ok()) answer->compile_key = spec->key;
  const auto recipe = space::RecipeFor(*answer->variant, answer->problem, device);
  if (recipe.ok()) {
    *answer->response.mutable_recipe() = *recipe;
    *answer->response.mutable_geometry() = space::GeometryOf(*recipe, answer->resources, device);
  }
  answer->response.mutable_timing()->set_median_us(tuned.us[fastest]);
  if (where == Tuned::kHere) {
    answer->response.set_trial("trials/0");
  } else {
    answer->response.set_provenance_detail("another model");
  }
  return answer;
}

class DaemonsRule : public AnswerRule {
 public:
  DaemonsRule(std::string name, bool nearest, bool heuristic, const Families& families,
              const attune::v1::Device& device, Tuned where = Tuned::kHere)
      : name_(std::move(name)), nearest_(nearest), heuristic_(heuristic), where_(where), device_(device) {
    host_.families = families;
    host_.devices.push_back(device);
  }

  std::string name() const override { return name_; }
  void Learn(const std::vector<const TunedProblem*>& tuned) override {
    known_.clear();
    for (const TunedProblem* one : tuned) known_.push_back(ServedFor(*one, where_, device_));
  }
  std::optional<RuleAnswer> Answer(const Choices& choices) const override {
    const KnownCode code(choices, device_);
    AnswerPtr answer;
    if (nearest_) {
      answer = catalog::MakeNearest(known_, choices.problem, device_, catalog::kDefaultPolicy, host_, &code);
    }
    if (answer == nullptr && heuristic_) {
      answer = catalog::MakeHeuristic(choices.problem, device_, catalog::kDefaultPolicy, host_, &code);
    }
    if (answer == nullptr) return std::nullopt;
    return RuleAnswer{*answer->variant, answer->response.predicted().us()};
  }

 private:
  const std::string name_;
  const bool nearest_;
  const bool heuristic_;
  const Tuned where_;
  const attune::v1::Device device_;
  catalog::Host host_;
  std::vector<AnswerPtr> known_;
};

}  // namespace

std::unique_ptr<AnswerRule> HeuristicRule(const Families& families, const attune::v1::Device& device) {
  return std::make_unique<DaemonsRule>("HEURISTIC", false, true, families, device);
}

std::unique_ptr<AnswerRule> NearestRule(const Families& families, const attune::v1::Device& device) {
  return std::make_unique<DaemonsRule>("NEAREST", true, false, families, device);
}

std::unique_ptr<AnswerRule> ServedRule(const Families& families, const attune::v1::Device& device) {
  return std::make_unique<DaemonsRule>("NEAREST, else HEURISTIC", true, true, families, device);
}

std::unique_ptr<AnswerRule> ShippedRule(const Families& families, const attune::v1::Device& device) {
  return std::make_unique<DaemonsRule>("NEAREST as shipped, else HEURISTIC", true, true, families, device,
                                       Tuned::kBeforeShipping);
}

}  // namespace attune::replay
