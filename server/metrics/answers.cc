#include "server/metrics/answers.h"

#include <cstdint>
#include <utility>

#include "server/metrics/words.h"

namespace attune::metrics {
namespace {

using prometheus::MetricType;

// So few queries a sequence are a decode step, speculative ones among them.
constexpr int64_t kMostDecodeQueries = 16;

constexpr const char* kMaskNames[] = {"none", "causal", "window"};
constexpr const char* kPhaseNames[] = {"decode", "prefill"};

size_t MaskOf(const v1::Problem& problem) {
  switch (problem.mask()) {
    case v1::MASK_CAUSAL_TOP_LEFT:
    case v1::MASK_CAUSAL_BOTTOM_RIGHT:
      return 1;
    case v1::MASK_WINDOW:
      return 2;
    default:
      return 0;
  }
}

size_t PhaseOf(const v1::Problem& problem) {
  return problem.seq_q() <= kMostDecodeQueries && problem.seq_q() < problem.seq_kv() ? 0 : 1;
}

}  // namespace

AnswerKind Answers::Of(const v1::Problem& problem, std::optional<v1::Provenance> provenance) {
  AnswerKind kind;
  size_t index = provenance.has_value() ? static_cast<size_t>(*provenance) : kNone;
  if (index >= kProvenances) index = kNone;
  kind.answers_ = &answers_[index];
  const bool tuned =
      provenance == v1::PROVENANCE_EXACT || provenance == v1::PROVENANCE_TIE || provenance == v1::PROVENANCE_STALE;
  const size_t dtype = static_cast<size_t>(problem.dtype());
  if (!tuned && dtype < kDTypes) kind.misses_ = &misses_[dtype][MaskOf(problem)][PhaseOf(problem)];
  return kind;
}

void Answers::Collect(Families& families) const {
  auto answers = MakeFamily("attune_answers_total", "Answers of GetBest by provenance; none: there was no answer.",
                            MetricType::Counter);
  for (size_t i = 0; i < kProvenances; ++i) {
    const auto provenance = static_cast<v1::Provenance>(i);
    AddValue(answers, {{"provenance", i == kNone ? "none" : Word(v1::Provenance_Name(provenance), "PROVENANCE_")}},
             static_cast<double>(answers_[i].value()));
  }
  auto misses = MakeFamily("attune_misses_total", "Questions for shapes that nobody has tuned, by class of shape.",
                           MetricType::Counter);
  // Elements of Q are never 8-bit.
  for (const v1::DType dtype : {v1::DTYPE_F16, v1::DTYPE_BF16}) {
    for (size_t mask = 0; mask < kMasks; ++mask) {
      for (size_t phase = 0; phase < kPhases; ++phase) {
        AddValue(misses,
                 {{"dtype", Word(v1::DType_Name(dtype), "DTYPE_")},
                  {"mask", kMaskNames[mask]},
                  {"phase", kPhaseNames[phase]}},
                 static_cast<double>(misses_[dtype][mask][phase].value()));
      }
    }
  }
  families.push_back(std::move(answers));
  families.push_back(std::move(misses));
}

}  // namespace attune::metrics
