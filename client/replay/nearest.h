// How good answers are for problems that were never tuned: each recorded problem answered from others, and held against
// its own recorded times.
#ifndef ATTUNE_CLIENT_REPLAY_NEAREST_H_
#define ATTUNE_CLIENT_REPLAY_NEAREST_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/replay/v1/recording.pb.h"
#include "attune/v1/device.pb.h"
#include "client/replay/answer_rule.h"
#include "client/replay/folds.h"
#include "client/replay/tuned_problem.h"

namespace attune::replay {

// What one rule said of one problem that was held out.
struct HeldOutAnswer {
  enum class End {
    kNone,        // it had no answer
    kUnrecorded,  // a variant that was not recorded: nobody knows how long it takes
    kFailed,      // a variant that failed
    kTimed,
  };
  End end = End::kNone;
  double regret = 0;              // its time / the best one - 1
  std::optional<double> of_time;  // the predicted time / its time
};

// Of a problem in a fold, an answer of each rule.
struct HeldOutRow {
  std::string fold;
  std::string problem;
  std::vector<HeldOutAnswer> answers;
};

struct AnswerTable {
  std::vector<std::string> rules;  // the first is what the others are held against
  std::vector<HeldOutRow> rows;
};

// Every rule of answer_rule.h. `families` are those that were recorded, `device` is one of the class that they were
// recorded on.
std::vector<std::unique_ptr<AnswerRule>> EveryRule(const Families& families, const attune::v1::Device& device);

// Holds out each fold in turn: the rules learn from the other problems, and answer for those.
AnswerTable HoldOut(const std::vector<TunedProblem>& problems, const std::vector<Fold>& folds,
                    const std::vector<std::unique_ptr<AnswerRule>>& rules);

// The same where the rules learn from problems of another card alone, as on a fresh install that was given them: none
// of them is the one that is asked for.
AnswerTable AnswerFrom(const std::vector<TunedProblem>& prior, const std::vector<TunedProblem>& problems,
                       const std::vector<std::unique_ptr<AnswerRule>>& rules);

// A line for each rule: how many it answered, how much slower than the best it was, how it stands against the first.
std::string Markdown(const AnswerTable& table);
// A line for each problem that was held out, a column for each rule.
std::string MarkdownOfRows(const AnswerTable& table);

// Both tables of both kinds of folds, of recordings of one class of device and one policy; and, where there are some,
// those of the answers that `prior` gives, recordings of another class. FailedPrecondition where they are of other
// sources than `families`, InvalidArgument where CheckAreOfOne refuses them, or they are fewer than two.
absl::StatusOr<std::string> CompareAnswers(const std::vector<v1::Recording>& recordings,
                                           const std::vector<v1::Recording>& prior, const Families& families,
                                           const attune::v1::Device& device);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_NEAREST_H_
