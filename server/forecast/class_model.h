// What a device class's tuned problems say of every other: which variants may be fastest there, and in which order.
//
// Plain data in, so that a recorded space is learned from as the daemon's trials are (client/replay).
#ifndef ATTUNE_SERVER_FORECAST_CLASS_MODEL_H_
#define ATTUNE_SERVER_FORECAST_CLASS_MODEL_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attune/v1/device.pb.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/problem.h"
#include "server/catalog/prior/tuned_problem.h"
#include "server/forecast/shape_model.h"
#include "server/search/feature_columns.h"
#include "server/space/space.h"

namespace attune::forecast {

// Immutable: threads may share it.
class ClassModel {
 public:
  // Of six problems of an H200 the first choice was no better than the nearest one's winner, of ten it was
  // (docs/benchmarks/2026-11-28-h200-forecasts.md).
  static constexpr size_t kLeastProblems = 8;

  using Families = std::vector<std::shared_ptr<const space::Family>>;

  // `families`: every one that a variant may be of. Problems with fewer variants than `least` say nothing.
  ClassModel(const Families& families, const v1::Device& device, const std::vector<catalog::TunedProblem>& tuned,
             size_t least = ShapeModel::kLeastRows);

  // How many problems it was learned from.
  size_t problems() const { return problems_.size(); }
  // Whether one of them is like it (IsLike): of others it says nothing that is worth knowing.
  bool Covers(const Problem& problem) const;
  // Whether its first choice is an answer: it covers the problem, and the guess of all families is of one that it has
  // learned from. How fast the others are it does not know.
  bool Answers(const Problem& problem) const;
  // The ten fastest of each tuned problem, re-fitted, and the guess, each once: the expected fastest first, of a
  // problem that it was learned from the one that was. The guess, which the family's author stands for, counts as 3 %
  // faster than is expected of it: of shapes unlike those that were tuned the model can be far off, and more often
  // where it expects little.
  std::vector<space::Variant> Ranked(const Problem& problem) const;
  // ln(time) of each variant of a problem, but for what all of the problem's share, for a search (ShapeModel::Expect).
  std::vector<double> Expect(const Problem& problem, const std::vector<space::Variant>& variants) const;

 private:
  std::vector<std::vector<double>> FeaturesOfEach(const Problem& problem,
                                                  const std::vector<space::Variant>& variants) const;

  const v1::Device device_;
  const search::FeatureColumns columns_;
  const Families families_;
  Families timed_;  // those of which something was timed
  std::vector<Problem> problems_;
  std::vector<space::Variant> fastest_;  // of each
  std::vector<space::Variant> winners_;  // each once
  std::optional<ShapeModel> trees_;
};

// Where searches find them. Thread-safe.
class Models {
 public:
  virtual ~Models() = default;
  // The newest of a device's class under a policy; null where too little was tuned there, and before it was looked at.
  virtual std::shared_ptr<const ClassModel> Model(const v1::Device& device, v1::Policy policy) = 0;
};

}  // namespace attune::forecast

#endif  // ATTUNE_SERVER_FORECAST_CLASS_MODEL_H_
