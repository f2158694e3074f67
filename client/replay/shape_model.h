// A model of variants over problems of every shape: how much slower than a problem's best each of its variants is.
#ifndef ATTUNE_CLIENT_REPLAY_SHAPE_MODEL_H_
#define ATTUNE_CLIENT_REPLAY_SHAPE_MODEL_H_

#include <string>
#include <vector>

#include "attune/v1/device.pb.h"
#include "client/replay/tuned_problem.h"
#include "server/search/tree_ensemble.h"

namespace attune::replay {

// What a launch does for nothing follows from the shape, and no tree can know it of a shape that it has not seen: rows
// past the last query, keys past the last key, SMs without work in the last wave. So the trees learn the time over
// that (ln), each problem's less what its fastest tenth takes.
class ShapeModel {
 public:
  // `columns`: names of Choices::features.
  ShapeModel(std::vector<std::string> columns, const attune::v1::Device& device);

  // Nothing, where it is what was learned last.
  void Learn(const std::vector<const TunedProblem*>& tuned);
  // ln(time) of a variant, but for what all of a problem's share.
  double Expect(const Choices& choices, size_t variant) const;

 private:
  double Column(const std::string& name, const std::vector<double>& features, double otherwise) const;
  double Waste(const Problem& problem, const std::vector<double>& features) const;
  std::vector<double> Row(const Problem& problem, const std::vector<double>& features) const;

  const std::vector<std::string> columns_;
  const double sms_;
  std::vector<const TunedProblem*> learned_;
  search::TreeEnsemble trees_;
};

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_SHAPE_MODEL_H_
