// A recorded problem as answers see it: the variants that there are for it, and how long each took.
#ifndef ATTUNE_CLIENT_REPLAY_TUNED_PROBLEM_H_
#define ATTUNE_CLIENT_REPLAY_TUNED_PROBLEM_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/replay/v1/recording.pb.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/trial.pb.h"
#include "proto/attune/problem.h"
#include "server/catalog/prior/tuned_problem.h"
#include "server/search/feature_columns.h"
#include "server/space/space.h"

namespace attune::replay {

using Families = std::vector<std::shared_ptr<const space::Family>>;

// What is known before anything is timed: what may be answered.
struct Choices {
  Problem problem;
  std::vector<space::Variant> variants;       // recorded ones
  std::vector<std::vector<double>> features;  // of each, as the columns have them
  std::vector<bool> useless;                  // whether the compiler's report rules it out
  std::map<std::string, size_t> by_text;
};

struct TunedProblem {
  Choices choices;
  std::vector<double> us;                        // of each variant; 0: it failed
  std::vector<attune::v1::Resources> resources;  // of each
  std::vector<size_t> fastest_first;             // those with a time

  double best_us() const { return us[fastest_first.front()]; }
};

// What a daemon learns of it for other problems.
catalog::TunedProblem LearnedOf(const TunedProblem& tuned);

// Those of `families` that the recording's rows are of, in its order. FailedPrecondition where its sources are others.
absl::StatusOr<Families> FamiliesOf(const v1::Recording& recording, const Families& families);

// Those of `families` that any of the recordings names, in the order of `families`.
Families Recorded(const std::vector<v1::Recording>& recordings, const Families& families);

// `families` are the server's, of the recording's sources: FailedPrecondition where they are others. InvalidArgument
// says what is wrong with the recording, as SpaceOf does.
absl::StatusOr<TunedProblem> TunedProblemOf(const v1::Recording& recording, const Families& families,
                                            const search::FeatureColumns& columns, const attune::v1::Device& device);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_TUNED_PROBLEM_H_
