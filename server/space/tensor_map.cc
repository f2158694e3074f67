#include "server/space/tensor_map.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "server/base/tensor_map.h"
#include "server/space/evaluated.h"
#include "server/space/strides.h"

namespace attune::space {
namespace {

using family::v1::TensorMapArgument;
using Expressions = google::protobuf::RepeatedPtrField<std::string>;

template <typename... What>
absl::Status Invalid(const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat(what...));
}

v1::TensorMap::Element ElementOf(const TensorMapArgument& from, const Problem& problem) {
  if (from.element() != v1::TensorMap::ELEMENT_UNSPECIFIED) return from.element();
  const bool of_keys = from.has_buffer() && (from.buffer() == v1::BUFFER_ROLE_K || from.buffer() == v1::BUFFER_ROLE_V);
  if (of_keys && HasScales(problem)) return v1::TensorMap::ELEMENT_U8;
  return problem.dtype == v1::DTYPE_BF16 ? v1::TensorMap::ELEMENT_BF16 : v1::TensorMap::ELEMENT_F16;
}

// `Number` is the message's; its limits beside the type's are CheckTensorMap's.
template <typename Number>
absl::Status EvaluateEach(const Evaluator& evaluator, absl::string_view field, const Expressions& from,
                          google::protobuf::RepeatedField<Number>* to) {
  constexpr int64_t kMost = sizeof(Number) == 4 ? std::numeric_limits<int32_t>::max() : kMaxExact;
  for (int i = 0; i < from.size(); ++i) {
    absl::StatusOr<int64_t> value = Whole(evaluator, absl::StrCat(field, "[", i, "]"), from[i], -kMost, kMost);
    if (!value.ok()) return value.status();
    to->Add(static_cast<Number>(*value));
  }
  return absl::OkStatus();
}

// Of the terms that hold; to->strides are there.
absl::Status EvaluateTerms(const Evaluator& evaluator, absl::string_view field, const TensorMapArgument& from,
                           const Problem& problem, v1::TensorMap* to) {
  std::set<int> indices;
  for (int i = 0; i < from.terms_size(); ++i) {
    const TensorMapArgument::Term& term = from.terms(i);
    if (!term.when().empty() && !evaluator.Holds(term.when())) continue;
    const std::string name = absl::StrCat(field, ".terms[", i, "]");
    if (!indices.insert(term.index()).second) {
      return Invalid(name, ".index is ", term.index(), ", which another term that holds has, too");
    }
    const absl::StatusOr<int64_t> factor =
        Whole(evaluator, absl::StrCat(name, ".factor"), term.factor(), -kMaxExact, kMaxExact);
    if (!factor.ok()) return factor.status();
    const absl::StatusOr<int64_t> offset =
        WholeOr(evaluator, absl::StrCat(name, ".offset"), term.offset(), -kMaxExact, 0, kMaxExact);
    if (!offset.ok()) return offset.status();
    const int64_t value = *offset + *factor * StrideOf(problem, term.stride());
    if (value != to->strides(term.index())) {
      return Invalid(name, " comes to ", value, " for the problem's layout, and strides[", term.index(), "] to ",
                     to->strides(term.index()));
    }
    v1::TensorMap::Term& added = *to->add_terms();
    added.set_index(term.index());
    *added.mutable_stride() = term.stride();
    added.set_factor(*factor);
    added.set_offset(*offset);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTensorMapArgument(absl::string_view field, const TensorMapArgument& map,
                                    const std::set<std::string>& scratch) {
  if (map.base_case() == TensorMapArgument::BASE_NOT_SET) {
    return Invalid(field, ": base is not given; allowed: buffer and scratch");
  }
  if (map.has_scratch() && scratch.count(map.scratch()) == 0) {
    return Invalid(field, ".scratch is '", map.scratch(), "', which is no scratch buffer");
  }
  if (map.has_buffer() && (map.buffer() == v1::BUFFER_ROLE_UNSPECIFIED || map.buffer() == v1::BUFFER_ROLE_SCRATCH)) {
    return Invalid(field, ".buffer must be a tensor or a table of the problem; scratch buffers go by name");
  }
  if (map.dims().empty() || map.dims_size() > kMaxTensorMapRank) {
    return Invalid(field, ".dims has ", map.dims_size(), "; allowed: 1 to ", kMaxTensorMapRank);
  }
  if (map.strides_size() != map.dims_size() - 1) {
    return Invalid(field, ".strides has ", map.strides_size(), "; allowed: ", map.dims_size() - 1,
                   ", one less than dims");
  }
  if (map.box_size() != map.dims_size()) {
    return Invalid(field, ".box has ", map.box_size(), "; allowed: ", map.dims_size(), ", as many as dims");
  }
  for (int i = 0; i < map.terms_size(); ++i) {
    const std::string term = absl::StrCat(field, ".terms[", i, "]");
    if (map.terms(i).index() < 0 || map.terms(i).index() >= map.strides_size()) {
      return Invalid(term, ".index is ", map.terms(i).index(), "; allowed: 0 to ", map.strides_size() - 1);
    }
    if (absl::Status status = CheckStride(absl::StrCat(term, ".stride"), map.terms(i).stride()); !status.ok()) {
      return status;
    }
    if (map.terms(i).factor().empty()) return Invalid(term, ".factor is not given");
  }
  return absl::OkStatus();
}

std::vector<std::pair<std::string, const std::string*>> ExpressionsOf(const TensorMapArgument& map) {
  std::vector<std::pair<std::string, const std::string*>> expressions;
  for (const auto& [name, text] :
       {std::pair("when", &map.when()), std::pair("base_offset", &map.base_offset()),
        std::pair("swizzle_bytes", &map.swizzle_bytes()), std::pair("l2_promotion_bytes", &map.l2_promotion_bytes())}) {
    if (!text->empty()) expressions.emplace_back(name, text);
  }
  for (const auto& [name, texts] :
       {std::pair("dims", &map.dims()), std::pair("strides", &map.strides()), std::pair("box", &map.box())}) {
    for (int i = 0; i < texts->size(); ++i) {
      expressions.emplace_back(absl::StrCat(name, "[", i, "]"), &texts->Get(i));
    }
  }
  for (int i = 0; i < map.terms_size(); ++i) {
    const TensorMapArgument::Term& term = map.terms(i);
    for (const auto& [name, text] :
         {std::pair("when", &term.when()), std::pair("factor", &term.factor()), std::pair("offset", &term.offset())}) {
      if (!text->empty()) expressions.emplace_back(absl::StrCat("terms[", i, "].", name), text);
    }
  }
  return expressions;
}

absl::Status EvaluateTensorMap(const Evaluator& evaluator, absl::string_view field, const TensorMapArgument& from,
                               const Problem& problem, const std::map<std::string, int>& scratch, v1::TensorMap* to) {
  if (!from.when().empty() && !evaluator.Holds(from.when())) return absl::OkStatus();
  if (from.has_scratch()) {
    to->mutable_base()->set_role(v1::BUFFER_ROLE_SCRATCH);
    to->mutable_base()->set_scratch(scratch.at(from.scratch()));
  } else {
    to->mutable_base()->set_role(from.buffer());
  }
  to->set_element(ElementOf(from, problem));
  const auto number = [&](const char* name, const std::string& text, int64_t most) {
    return WholeOr(evaluator, absl::StrCat(field, ".", name), text, -most, 0, most);
  };
  constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
  const absl::StatusOr<int64_t> offset = number("base_offset", from.base_offset(), kMaxExact);
  if (!offset.ok()) return offset.status();
  to->set_base_offset(*offset);
  const absl::StatusOr<int64_t> swizzle = number("swizzle_bytes", from.swizzle_bytes(), kMaxInt32);
  if (!swizzle.ok()) return swizzle.status();
  to->set_swizzle_bytes(static_cast<int32_t>(*swizzle));
  const absl::StatusOr<int64_t> promotion = number("l2_promotion_bytes", from.l2_promotion_bytes(), kMaxInt32);
  if (!promotion.ok()) return promotion.status();
  to->set_l2_promotion_bytes(static_cast<int32_t>(*promotion));
  absl::Status status = EvaluateEach(evaluator, absl::StrCat(field, ".dims"), from.dims(), to->mutable_dims());
  if (!status.ok()) return status;
  status = EvaluateEach(evaluator, absl::StrCat(field, ".strides"), from.strides(), to->mutable_strides());
  if (!status.ok()) return status;
  status = EvaluateEach(evaluator, absl::StrCat(field, ".box"), from.box(), to->mutable_box());
  if (!status.ok()) return status;
  if (status = EvaluateTerms(evaluator, field, from, problem, to); !status.ok()) return status;
  if (status = CheckTensorMap(*to); !status.ok()) return Invalid(field, ".", status.message());
  return absl::OkStatus();
}

}  // namespace attune::space
