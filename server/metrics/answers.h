// Answers of look-ups by provenance, and what was asked for that nobody has tuned, by class of shape.
#ifndef ATTUNE_SERVER_METRICS_ANSWERS_H_
#define ATTUNE_SERVER_METRICS_ANSWERS_H_

#include <array>
#include <cstddef>
#include <optional>

#include "attune/v1/service.pb.h"
#include "server/metrics/counter.h"
#include "server/metrics/families.h"

namespace attune::metrics {

// What an answer counts as. It stays good as long as its Answers, so that it may be kept beside the answer's bytes.
class AnswerKind {
 public:
  AnswerKind() = default;
  // One call more was answered so: at most two relaxed additions.
  void Count() const {
    if (answers_ != nullptr) answers_->Add();
    if (misses_ != nullptr) misses_->Add();
  }

 private:
  friend class Answers;
  Counter* answers_ = nullptr;
  Counter* misses_ = nullptr;
};

// Thread-safe.
class Answers {
 public:
  // `provenance`: nothing where there was no answer. `problem` is valid.
  AnswerKind Of(const v1::Problem& problem, std::optional<v1::Provenance> provenance);

  void Collect(Families& families) const;

 private:
  static constexpr size_t kNone = 0;  // the value of PROVENANCE_UNSPECIFIED
  static constexpr size_t kProvenances = v1::Provenance_ARRAYSIZE;
  static constexpr size_t kDTypes = v1::DType_ARRAYSIZE;
  static constexpr size_t kMasks = 3;
  static constexpr size_t kPhases = 2;

  std::array<Counter, kProvenances> answers_;
  std::array<std::array<std::array<Counter, kPhases>, kMasks>, kDTypes> misses_;
};

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_ANSWERS_H_
