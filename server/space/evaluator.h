// A manifest with every expression compiled: give it a problem, a device and parameter values, and it says which rule
// rejects them and what any of the manifest's expressions comes to.
#ifndef ATTUNE_SERVER_SPACE_EVALUATOR_H_
#define ATTUNE_SERVER_SPACE_EVALUATOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "attune/family/v1/family.pb.h"
#include "attune/v1/device.pb.h"
#include "proto/attune/problem.h"
#include "server/space/advice.h"
#include "server/space/expression.h"
#include "server/space/symbols.h"

namespace attune::space {

// Something that must hold: a problem limit, a constraint, or a limit of the device on a launch.
struct Rule {
  Expression expression;
  std::string text;
  std::string reason;
  bool advice = false;
};

// Not thread-safe; EvaluatorPool hands each thread its own.
class Evaluator {
 public:
  // InvalidArgument names the manifest's field whose expression is wrong, and why. A problem limit must not wait for
  // parameters, a define not for launch-time ones. Names are taken to be checked (CheckManifest).
  static absl::StatusOr<std::unique_ptr<Evaluator>> Compile(const family::v1::KernelFamily& manifest);
  // All that is wrong with the expressions, not only the first.
  static std::vector<absl::Status> MistakesIn(const family::v1::KernelFamily& manifest);

  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Sets problem and device, and the lets that wait for nothing else. Returns the first problem limit that does not
  // hold, or null. From now on constraints that advise are rules too, unless they are ignored.
  const Rule* Bind(const Problem& problem, const v1::Device& device, Advice advice = Advice::kHeeded);
  // Expressions that are rules too, until the next Bind. InvalidArgument names the first that is wrong, and why; there
  // are then none.
  absl::Status Require(const std::vector<std::string>& where);
  // The first rule that waits for no parameter and does not hold, problem limits first; or null. After Bind.
  const Rule* Root() const;
  // Sets parameter `index` (0-based, those before it are set) and the lets that waited for it. Returns the first rule
  // that waited for it and does not hold, or null.
  const Rule* Set(size_t index, int64_t value);
  // Whether no rule waits for parameters from `index` on.
  bool Settled(size_t index) const { return index >= settled_ && index >= required_until_; }
  // Bind and Set for all parameters; the first rule that does not hold, or null. All values are set in any case.
  const Rule* Assign(const Problem& problem, const v1::Device& device, absl::Span<const int64_t> values, Advice advice);

  // Whether all that is required holds, all parameters set.
  bool HasRequired() const;
  // Whether the rules for guesses alone hold too, all parameters set.
  bool MayBeGuessed() const { return FirstBroken(guess_rules_) == nullptr; }

  // Of an expression that stands in the manifest, with the values now set.
  double Value(const std::string& text) const;
  bool Holds(const std::string& text) const;
  // Of a let, or of anything else an expression may name, as it now is; the name exists.
  double Named(absl::string_view name) { return symbols_.Find(name)->value; }

 private:
  struct Let {
    Expression expression;
    double* value;
  };
  // What becomes known when one more parameter is set; level 0 is before the first.
  struct Level {
    std::vector<Let> lets;
    std::vector<Rule> rules;
  };

  Evaluator() = default;
  // These go on after a mistake, so that mistakes_ has them all.
  void CompileAll(const family::v1::KernelFamily& manifest);
  void CompileNames(const family::v1::KernelFamily& manifest);
  void CompileRules(const family::v1::KernelFamily& manifest);
  void CompileDefines(const family::v1::KernelFamily& manifest);
  void CompileLaunches(const family::v1::KernelFamily& manifest);
  // Keeps `text` for Value. Null when it is wrong.
  const Expression* Keep(absl::string_view field, const std::string& text);
  void AddRule(absl::string_view field, const family::v1::Constraint& constraint);
  const Rule* FirstBroken(const std::vector<Rule>& rules) const;
  const Rule* BrokenAt(size_t level) const;  // of the manifest's rules, then of those required
  void Compute(const Level& level);

  Symbols symbols_;
  std::vector<double*> builtins_;
  std::vector<double*> parameters_;
  std::vector<Rule> problem_limits_;
  std::vector<Rule> guess_rules_;
  std::vector<Level> levels_;
  Advice advice_ = Advice::kHeeded;
  std::vector<std::vector<Rule>> required_;  // by level; none where nothing is required
  size_t required_until_ = 0;                // the last level that has one
  size_t settled_ = 0;                       // the last level that has a rule
  std::map<std::string, Expression> kept_;
  std::vector<absl::Status> mistakes_;
};

// The rules that every launch of a family must keep on any device, whatever its manifest says: threads and dynamic
// shared memory a block, CUDA's bounds on a grid (CUDA C++ Programming Guide, Technical Specifications), and what
// clusters, tensor maps and programmatic launches ask for.
std::vector<family::v1::Constraint> DeviceLimits(const family::v1::KernelFamily& manifest);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_EVALUATOR_H_
