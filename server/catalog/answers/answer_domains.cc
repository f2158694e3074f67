#include "server/catalog/answers/answer_domains.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "proto/attune/domain.h"
#include "server/space/domains.h"
#include "server/space/space.h"

namespace attune::catalog {
namespace {

using v1::Domain;

// Lengths of a range at which the answer is made, before the exact end is looked for.
constexpr int64_t kProbes = 8;

struct Range {
  int64_t low;
  int64_t high;
};

// The lengths around `length` that one answer may hold for.
Range Around(int64_t length) {
  const auto low = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(length)));
  if (low <= space::kMostLengths) return {low, 2 * low - 1};
  const int64_t part = length / space::kMostLengths * space::kMostLengths;
  return {part, part + space::kMostLengths - 1};
}

// The last of own, ..., limit (in either direction) of which `holds` is true, as it is of own. Once false it is taken
// to stay so; where it is true at all of kProbes lengths it is taken to be true of all.
template <typename Holds>
int64_t LastThatHolds(int64_t own, int64_t limit, const Holds& holds) {
  int64_t last = own;
  int64_t beyond = own;
  for (int64_t i = 1; i <= kProbes && last == beyond; ++i) {
    beyond = own + (limit - own) * i / kProbes;
    if (beyond == last || holds(beyond)) last = beyond;
  }
  while (last != beyond) {
    const int64_t middle = last + (beyond - last) / 2;
    if (middle == last) break;
    (holds(middle) ? last : beyond) = middle;
  }
  return last;
}

// Whether the service may be asked for it under this very text.
bool IsAProblem(const Problem& problem) {
  const absl::StatusOr<Problem> normal = FromProto(ToProto(problem));
  return normal.ok() && *normal == problem;
}

class Ranges {
 public:
  explicit Ranges(const DomainQuestion& question) : question_(question) {}

  std::vector<Domain> Along(Domain::Axis axis) const {
    const int64_t own = LengthAlong(axis, question_.problem);
    Range range = Allowed(axis, own);
    const auto same = [&](int64_t length) { return SameAnswer(WithLength(axis, length, question_.problem)); };
    range.low = LastThatHolds(own, range.low, same);
    range.high = LastThatHolds(own, range.high, same);
    if (range.low == range.high) return {};
    if (question_.answer != nullptr) {
      return space::DomainsOf(*question_.answer->variant, question_.problem, *question_.device, axis, range.low,
                              range.high);
    }
    Domain domain;
    domain.set_axis(axis);
    domain.set_low(range.low);
    domain.set_high(range.high);
    return {domain};
  }

 private:
  // Without lengths that are tuned, and those that no problem has.
  Range Allowed(Domain::Axis axis, int64_t own) const {
    Range range = Around(own);
    const auto end_before = [&](int64_t length) {
      if (length < own) range.low = std::max(range.low, length + 1);
      if (length > own) range.high = std::min(range.high, length - 1);
    };
    for (const Problem& tuned : question_.tuned) {
      const int64_t length = LengthAlong(axis, tuned);
      if (WithLength(axis, length, question_.problem) == tuned) end_before(length);
    }
    // There both causal alignments are one problem, of another text.
    if (axis == Domain::AXIS_KV && !IsAProblemAt(axis, question_.problem.seq_q)) end_before(question_.problem.seq_q);
    if (axis == Domain::AXIS_Q && !IsAProblemAt(axis, question_.problem.seq_kv)) end_before(question_.problem.seq_kv);
    while (!IsAProblemAt(axis, range.high)) range.high -= (range.high - own + 1) / 2;
    return range;
  }
  bool IsAProblemAt(Domain::Axis axis, int64_t length) const {
    return IsAProblem(WithLength(axis, length, question_.problem));
  }

  bool SameAnswer(const Problem& there) const {
    const AnswerPtr answer = question_.answer_for(there);
    if (answer == nullptr || question_.answer == nullptr) return answer == question_.answer;
    return answer->variant->family == question_.answer->variant->family &&
           answer->variant->values == question_.answer->variant->values &&
           answer->compile_key == question_.answer->compile_key;
  }

  const DomainQuestion& question_;
};

// Whether the answer is the variant as today's families have it: others may have other recipes.
bool IsOfToday(const Answer& answer, const v1::Device& device) {
  if (!answer.variant.has_value()) return false;
  const absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(*answer.variant, answer.problem, device);
  return recipe.ok() && recipe->SerializeAsString() == answer.response.recipe().SerializeAsString();
}

}  // namespace

google::protobuf::RepeatedPtrField<Domain> DomainsFor(const DomainQuestion& question) {
  google::protobuf::RepeatedPtrField<Domain> domains;
  if (question.answer != nullptr && !IsOfToday(*question.answer, *question.device)) return domains;
  for (const Domain::Axis axis : AxesOf(question.problem)) {
    std::vector<Domain> some = Ranges(question).Along(axis);
    const bool only_its_own = some.size() == 1 && some[0].low() == some[0].high();
    if (only_its_own) continue;
    for (Domain& domain : some) *domains.Add() = std::move(domain);
  }
  return domains;
}

}  // namespace attune::catalog
