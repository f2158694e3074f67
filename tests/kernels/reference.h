// What O and LSE should be, in fp64 and row by row.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tensors.h"

namespace emulation {

class Reference {
 public:
  explicit Reference(const Tensors& tensors) : problem_(tensors.problem) {
    o_.assign(tensors.o.size(), NAN);  // as it was between the rows
    lse_.resize(tensors.lse.size());
    ForEachRow([&](int sequence, int head, int row) { Compute(tensors, sequence, head, row); });
  }

  // The largest of a kernel's deviations, relative where a value is above 1; infinite where one alone is NaN.
  struct Deviation {
    double o = 0, lse = 0;
  };
  Deviation Of(const Tensors& tensors) const {
    Deviation worst;
    for (size_t i = 0; i < o_.size(); ++i) Raise(worst.o, ToFloat(tensors.o[i]), o_[i]);
    ForEachRow([&](int sequence, int head, int row) {
      const long long number = problem_.LogSumPlace(sequence, head, row);
      Raise(worst.lse, tensors.lse[number], lse_[number]);
    });
    return worst;
  }

 private:
  template <class Function>
  void ForEachRow(Function function) const {
    for (int sequence = 0; sequence < problem_.Batch(); ++sequence) {
      for (int head = 0; head < problem_.heads_q; ++head) {
        for (int row = 0; row < problem_.q_lengths[sequence]; ++row) function(sequence, head, row);
      }
    }
  }

  void Compute(const Tensors& tensors, int sequence, int head, int row) {
    const int dim = problem_.head_dim;
    const long long place = problem_.QueryPlace(Tensor::kQ, sequence, head, row);
    const auto key_place = [&](Tensor tensor, size_t key) {
      return tensors.KeyPlace(tensor, sequence, head / problem_.Group(), static_cast<int>(key));
    };
    const double key_scale = tensors.KeyScale(sequence, head / problem_.Group());
    const double value_scale = tensors.ValueScale(sequence, head / problem_.Group());
    std::vector<double> query(dim);
    for (int i = 0; i < dim; ++i) {
      query[i] = key_scale * ToFloat(tensors.q[place + i]) / std::sqrt(static_cast<double>(dim));
    }

    const double sink = problem_.sinks ? tensors.sinks[head] : -INFINITY;
    double maximum = sink;
    std::vector<double> logits(problem_.kv_lengths[sequence], -INFINITY);
    for (size_t key = 0; key < logits.size(); ++key) {
      if (!problem_.Sees(sequence, row, static_cast<int>(key))) continue;
      const KvElement* const of_key = &tensors.k[key_place(Tensor::kK, key)];
      double logit = 0;
      for (int i = 0; i < dim; ++i) logit += query[i] * ToFloat(of_key[i]);
      if (problem_.softcap > 0) logit = problem_.softcap * std::tanh(logit / problem_.softcap);
      logits[key] = logit;
      maximum = std::max(maximum, logit);
    }

    double sum = maximum == -INFINITY ? 0.0 : std::exp(sink - maximum);
    double* const output = o_.data() + problem_.QueryPlace(Tensor::kO, sequence, head, row);
    std::fill(output, output + dim, 0.0);
    for (size_t key = 0; key < logits.size(); ++key) {
      if (logits[key] == -INFINITY) continue;
      const double weight = std::exp(logits[key] - maximum);
      sum += weight;
      const KvElement* const value = &tensors.v[key_place(Tensor::kV, key)];
      for (int i = 0; i < dim; ++i) output[i] += weight * value_scale * ToFloat(value[i]);
    }
    for (int i = 0; i < dim; ++i) output[i] = sum == 0 ? 0.0 : output[i] / sum;
    lse_[problem_.LogSumPlace(sequence, head, row)] = maximum + std::log(sum);
  }

  static void Raise(double& worst, double got, double wanted) {
    const bool same = got == wanted || (std::isnan(got) && std::isnan(wanted));
    const double deviation = same ? 0.0 : std::abs(got - wanted) / std::max(1.0, std::abs(wanted));
    worst = std::isnan(deviation) ? INFINITY : std::max(worst, deviation);
  }

  const Problem problem_;
  std::vector<double> o_, lse_;
};

}  // namespace emulation
