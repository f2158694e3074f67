// A model of variants over problems of every shape: which will be fastest for one that nobody tuned.
//
// Trees (tree_ensemble.h) learn ln(time), each problem's less what its fastest tenth takes, from a variant's features,
// how its work items fill the SMs (schedule.h), which no tree could guess of a shape that it has not seen, and the
// problem's sizes and types. Where one item more than there are SMs doubles the time, trees that never saw such a shape
// expect their leaves' mean. So others learn ln(time) less ln(what idle SMs cost), which is added again; they err where
// that is hidden by other things, as it is of short kernels.
#ifndef ATTUNE_SERVER_FORECAST_SHAPE_MODEL_H_
#define ATTUNE_SERVER_FORECAST_SHAPE_MODEL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "attune/v1/device.pb.h"
#include "proto/attune/problem.h"
#include "server/forecast/schedule.h"
#include "server/search/tree_ensemble.h"

namespace attune::forecast {

// The variants of a problem that are learned from (catalog::TunedProblem).
struct TunedShape {
  Problem problem;
  double level_us = 0;
  std::vector<double> us;                     // of each variant
  std::vector<std::vector<double>> features;  // of each, as search::FeatureColumns gives them
};

class ShapeModel {
 public:
  // Of fewer, their fastest may be far from what is to be had.
  static constexpr size_t kLeastRows = 20;

  // `names` are those of the features. Shapes without variants say nothing. On up to half of the host's cores; the same
  // on however many.
  static ShapeModel Fit(std::vector<std::string> names, const v1::Device& device,
                        const std::vector<TunedShape>& shapes);

  // ln(time) of each variant of a problem, by its features, but for what all of the problem's share. For who tries some
  // of them and sees what they take.
  std::vector<double> Expect(const Problem& problem, const std::vector<std::vector<double>>& variants) const;
  // The same by both kinds of trees. For who takes one as it is: what is far off by one is seldom so by both.
  std::vector<double> ExpectUntried(const Problem& problem, const std::vector<std::vector<double>>& variants) const;

 private:
  ShapeModel(std::vector<std::string> names, const v1::Device& device) : names_(std::move(names)), device_(device) {}

  struct Row {
    std::vector<double> columns;
    double idle = 0;  // ln(what idle SMs cost)
  };
  Row RowOf(const std::vector<double>& features, const Problem& problem, Schedules& schedules) const;

  std::vector<std::string> names_;
  v1::Device device_;
  // The mean of what the trees say.
  static double MeanOf(const std::vector<search::TreeEnsemble>& parts, const Row& row);

  // Of as many trees each; none of nothing.
  std::vector<search::TreeEnsemble> whole_;
  std::vector<search::TreeEnsemble> unexplained_;  // by idle SMs
};

}  // namespace attune::forecast

#endif  // ATTUNE_SERVER_FORECAST_SHAPE_MODEL_H_
