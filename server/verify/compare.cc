// The acceptance rule. A first pass, which vectorises, counts what is wrong; only a wrong output is searched for its
// first wrong element.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/verify/half.h"
#include "server/verify/parallel.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

constexpr int64_t kGrain = 1 << 16;
// Up to so many elements the tolerance is ToleranceFor's.
constexpr double kTypicalElements = 1 << 17;
// An error of a tolerance more is rarer by the exponential of about 17 (tests/gpu/rounding_tail.py); what else a kernel
// rounds has the rest.
constexpr double kRarerByTolerance = 16;

using Tally = OutputTally;

// `to_float(i)` is element i of the output. Numbers that are not negative are ordered as their bits, those of NaN lie
// above those of infinity, and loops over integers vectorise. NaN is never right, and counts in neither maximum.
template <typename ToFloatAt>
Tally Count(int64_t begin, int64_t end, const float* reference, float absolute, float relative, ToFloatAt to_float) {
  constexpr int32_t kInfinity = 0x7f800000;
  int64_t right = 0;
  int32_t max_error = 0;
  int32_t max_reference = 0;
  for (int64_t i = begin; i < end; ++i) {
    const float magnitude = std::fabs(reference[i]);
    const auto error = std::bit_cast<int32_t>(std::fabs(to_float(i) - reference[i]));
    const auto allowed = std::bit_cast<int32_t>(absolute + relative * magnitude);
    const auto size = std::bit_cast<int32_t>(magnitude);
    right += (error <= allowed) & (allowed <= kInfinity);
    max_error = std::max(max_error, error <= kInfinity ? error : 0);
    max_reference = std::max(max_reference, size <= kInfinity ? size : 0);
  }
  return {end - begin - right, std::bit_cast<float>(max_error), std::bit_cast<float>(max_reference)};
}

template <typename ToFloatAt>
Tally CountAll(absl::Span<const float> reference, float absolute, float relative, ToFloatAt to_float) {
  const int64_t n = static_cast<int64_t>(reference.size());
  std::vector<Tally> tallies(ChunkCount(n, kGrain));
  ParallelChunks(n, kGrain, [&](int64_t chunk, int64_t begin, int64_t end) {
    tallies[chunk] = Count(begin, end, reference.data(), absolute, relative, to_float);
  });
  Tally total;
  for (const Tally& tally : tallies) {
    total.wrong += tally.wrong;
    total.max_error = std::max(total.max_error, tally.max_error);
    total.max_reference = std::max(total.max_reference, tally.max_reference);
  }
  return total;
}

Tally CountAll(v1::DType dtype, absl::Span<const uint16_t> out, absl::Span<const float> reference, float absolute,
               float relative) {
  if (dtype == v1::DTYPE_BF16) {
    return CountAll(reference, absolute, relative, [out = out.data()](int64_t i) { return Bf16ToFloat(out[i]); });
  }
  return CountAll(reference, absolute, relative, [out = out.data()](int64_t i) { return F16ToFloat(out[i]); });
}

// "O[batch 0, head 1, row 63, dim 5]"; with varlen, whose sequences' lengths are not known here, "O[token 63, head 1,
// dim 5]".
std::string ElementName(const Problem& problem, int64_t index) {
  const int64_t dim = index % problem.head_dim;
  const int64_t row = index / problem.head_dim;
  if (problem.varlen) {
    return absl::StrFormat("O[token %d, head %d, dim %d]", row / problem.heads_q, row % problem.heads_q, dim);
  }
  const bool bshd = problem.layout == v1::LAYOUT_BSHD;
  const int64_t inner = bshd ? problem.heads_q : problem.seq_q;
  const int64_t middle = bshd ? problem.seq_q : problem.heads_q;
  const int64_t first = row % inner;
  const int64_t second = row / inner % middle;
  return absl::StrFormat("O[batch %d, head %d, row %d, dim %d]", row / inner / middle, bshd ? first : second,
                         bshd ? second : first, dim);
}

bool LseIsRight(float value, float reference, Tolerance tolerance) {
  if (std::isinf(reference)) return value == reference;
  return std::fabs(value - reference) <= tolerance.absolute + tolerance.relative * std::fabs(reference);
}

Tolerance Scaled(Tolerance tolerance, double factor) {
  return {tolerance.absolute * factor, tolerance.relative * factor};
}

Comparison WrongSize(size_t size, size_t expected) {
  Comparison comparison;
  comparison.max_abs_error = std::numeric_limits<double>::infinity();
  comparison.detail = absl::StrCat("the output has ", size, " elements, the reference ", expected);
  return comparison;
}

}  // namespace

Tolerance ToleranceFor(v1::DType dtype) {
  return dtype == v1::DTYPE_BF16 ? Tolerance{1e-2, 1e-2} : Tolerance{1e-3, 1e-3};
}

double TailFactor(int64_t elements) {
  return 1 + std::log(std::max(1.0, static_cast<double>(elements) / kTypicalElements)) / kRarerByTolerance;
}

OutputTally TallyOf(absl::Span<const float> out, absl::Span<const float> reference, float absolute, float relative) {
  return CountAll(reference, absolute, relative, [out = out.data()](int64_t i) { return out[i]; });
}

Tolerance OutputTolerance(const Problem& problem, int64_t elements) {
  return Scaled(ToleranceFor(problem.dtype), TailFactor(elements));
}

double ErrorLimit(const Problem& problem, float max_reference, double plain_max_abs_error) {
  // The output is rounded to the dtype and the plain computation's is not, so one step at the largest value is free.
  const double step = max_reference > 0 ? std::exp2(std::floor(std::log2(max_reference))) * UnitStep(problem.dtype) : 0;
  return 2 * std::max(plain_max_abs_error, step);
}

Comparison CompareOutput(const Problem& problem, absl::Span<const uint16_t> out, absl::Span<const float> reference,
                         double plain_max_abs_error) {
  if (out.size() != reference.size()) return WrongSize(out.size(), reference.size());
  const Tolerance tolerance = OutputTolerance(problem, static_cast<int64_t>(out.size()));
  const float absolute = static_cast<float>(tolerance.absolute), relative = static_cast<float>(tolerance.relative);
  const Tally tally = CountAll(problem.dtype, out, reference, absolute, relative);
  Comparison comparison;
  comparison.max_abs_error = tally.max_error;
  if (tally.wrong > 0) {
    const auto at = [&](int64_t i) { return ToFloat(problem.dtype, out[i]); };
    int64_t first = 0;
    while (Count(first, first + 1, reference.data(), absolute, relative, at).wrong == 0) ++first;
    if (!std::isfinite(at(first))) comparison.max_abs_error = std::numeric_limits<double>::infinity();
    comparison.detail = absl::StrFormat("%s is %g, the reference %g (allowed +-%g); %d of %d elements are wrong",
                                        ElementName(problem, first), at(first), reference[first],
                                        tolerance.absolute + tolerance.relative * std::fabs(reference[first]),
                                        tally.wrong, static_cast<int64_t>(out.size()));
    return comparison;
  }
  const double limit = ErrorLimit(problem, tally.max_reference, plain_max_abs_error);
  if (tally.max_error > limit) {
    comparison.detail =
        absl::StrFormat("the largest error is %g; allowed is twice a plain computation's error or rounding step, %g",
                        tally.max_error, limit);
    return comparison;
  }
  comparison.ok = true;
  return comparison;
}

Comparison CompareLse(absl::Span<const float> lse, absl::Span<const float> reference) {
  if (lse.size() != reference.size()) return WrongSize(lse.size(), reference.size());
  const Tolerance tolerance;
  Comparison comparison;
  int64_t wrong = 0;
  for (size_t i = 0; i < lse.size(); ++i) {
    if (LseIsRight(lse[i], reference[i], tolerance)) {
      if (!std::isinf(reference[i])) {
        comparison.max_abs_error =
            std::max(comparison.max_abs_error, static_cast<double>(std::fabs(lse[i] - reference[i])));
      }
      continue;
    }
    if (wrong++ == 0) comparison.detail = absl::StrFormat("LSE[%d] is %g, the reference %g", i, lse[i], reference[i]);
  }
  comparison.ok = wrong == 0;
  if (wrong > 0) absl::StrAppend(&comparison.detail, "; ", wrong, " of ", lse.size(), " elements are wrong");
  return comparison;
}

}  // namespace attune::verify
