#include "client/cpp/launch/strides.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attune::launch {
namespace {

using v1::Stride;

constexpr int64_t kAny = -1;                          // as many entries as there are: tokens, pages
constexpr int64_t kMultiple = 16;                     // bytes that kernels load at once
constexpr int64_t kFarthest = int64_t{1} << 31;       // heads and rows; kernels compute with 32 bits
constexpr int64_t kFarthestBatch = int64_t{1} << 39;  // the driver's maps allow less than 2^40 bytes

struct Dimension {
  Stride::Dimension dimension;
  const char* name;
  int64_t size;
  int64_t own;
  int64_t given;
};
struct Role {
  v1::BufferRole role;
  const char* name;
  const Spacing& given;
  int64_t multiple;  // elements
};

// Entries of a tensor's dimensions.
struct Sizes {
  int64_t batch, heads, rows;
};

Sizes SizesOf(const Problem& problem, bool is_kv) {
  const int64_t heads = is_kv ? problem.heads_kv : problem.heads_q;
  if (is_kv && problem.page_size > 0) return {kAny, heads, problem.page_size};
  if (problem.varlen) return {1, heads, kAny};
  return {problem.batch, heads, is_kv ? problem.seq_kv : problem.seq_q};
}

Spacing OwnSpacing(const Problem& problem, bool is_kv) {
  const auto [batch, heads, rows] = SizesOf(problem, is_kv);
  const int64_t dim = problem.head_dim;
  const bool rows_apart = problem.layout == v1::LAYOUT_BSHD || (is_kv && problem.page_size > 0) || problem.varlen;
  if (!rows_apart) return {heads * rows * dim, rows * dim, dim};
  return {rows == kAny ? 0 : rows * heads * dim, dim, heads * dim};
}

using Named = std::map<std::pair<v1::BufferRole, Stride::Dimension>, bool>;  // whether a tensor map has it

Named NamedIn(const v1::LaunchRecipe& recipe) {
  Named named;
  for (const v1::KernelLaunch& launch : recipe.launches()) {
    for (const v1::KernelArg& arg : launch.args()) {
      if (arg.has_stride()) named[{arg.stride().role(), arg.stride().dimension()}] |= false;
      for (const v1::TensorMap::Term& term : arg.tensor_map().terms()) {
        named[{term.stride().role(), term.stride().dimension()}] = true;
      }
    }
  }
  return named;
}

bool IsScale(v1::BufferRole role) { return role == v1::BUFFER_ROLE_K_SCALE || role == v1::BUFFER_ROLE_V_SCALE; }

absl::Status Check(const Role& role, const Dimension& dimension, const Named& named) {
  const std::string what =
      absl::StrCat(role.name, " has ", dimension.given, " elements from one ", dimension.name, " to the next; ");
  const auto it = named.find({role.role, dimension.dimension});
  if (it == named.end()) {
    return absl::InvalidArgumentError(absl::StrCat(what, "this kernel reads ", dimension.own, " alone"));
  }
  const int64_t least = role.role == v1::BUFFER_ROLE_O || it->second ? role.multiple : 0;
  if (dimension.given % role.multiple != 0 || dimension.given < least) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, "it must be a multiple of ", role.multiple, ", at least ", least));
  }
  const int64_t most = dimension.dimension == Stride::DIMENSION_BATCH ? kFarthestBatch : kFarthest;
  if (dimension.given < most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, "it must be less than ", most));
}

void Place(const Stride& stride, int64_t elements, v1::LaunchRecipe& recipe) {
  const auto is_it = [&](const Stride& other) {
    return other.role() == stride.role() && other.dimension() == stride.dimension();
  };
  for (v1::KernelLaunch& launch : *recipe.mutable_launches()) {
    for (v1::KernelArg& arg : *launch.mutable_args()) {
      if (arg.has_stride() && is_it(arg.stride())) arg.set_i64(elements);
      if (!arg.has_tensor_map()) continue;
      for (const v1::TensorMap::Term& term : arg.tensor_map().terms()) {
        if (!is_it(term.stride()) || term.index() < 0 || term.index() >= arg.tensor_map().strides_size()) continue;
        arg.mutable_tensor_map()->set_strides(term.index(), term.offset() + term.factor() * elements);
      }
    }
  }
}

// Passes `scale` in all arguments that are proportional to it.
absl::Status PlaceScale(double scale, const Problem& problem, v1::LaunchRecipe& recipe) {
  const double usual = 1 / std::sqrt(static_cast<double>(problem.head_dim));
  double most = std::numeric_limits<double>::infinity();
  for (v1::KernelLaunch& launch : *recipe.mutable_launches()) {
    for (v1::KernelArg& arg : *launch.mutable_args()) {
      if (arg.max_scale_ratio() <= 0) continue;
      most = std::min(most, usual * static_cast<double>(arg.max_scale_ratio()));
      arg.set_f32(static_cast<float>(static_cast<double>(arg.f32()) * (scale / usual)));
    }
  }
  if (std::isinf(most)) {
    return absl::InvalidArgumentError(
        absl::StrCat("softmax_scale is ", scale, "; this kernel computes 1/sqrt(head_dim), ", usual, ", alone"));
  }
  if (scale > 0 && scale <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("softmax_scale is ", scale, "; this kernel computes those above 0, up to ", most));
}

}  // namespace

Placement OwnPlacement(const Problem& problem) {
  const Spacing q = OwnSpacing(problem, /*is_kv=*/false), kv = OwnSpacing(problem, /*is_kv=*/true);
  const Spacing scale = HasScales(problem) ? Spacing{problem.heads_kv, 1, 0} : Spacing{};
  return {q, kv, kv, q, scale, scale};
}

absl::StatusOr<v1::LaunchRecipe> PlacedRecipe(v1::LaunchRecipe recipe, const Problem& problem,
                                              const Placement& placement) {
  const Named named = NamedIn(recipe);
  const int64_t of_q = kMultiple / DTypeBytes(problem.dtype);
  const int64_t of_kv = kMultiple / DTypeBytes(KvDType(problem));
  const Role roles[] = {{v1::BUFFER_ROLE_Q, "q", placement.q, of_q},
                        {v1::BUFFER_ROLE_K, "k", placement.k, of_kv},
                        {v1::BUFFER_ROLE_V, "v", placement.v, of_kv},
                        {v1::BUFFER_ROLE_O, "o", placement.o, of_q},
                        {v1::BUFFER_ROLE_K_SCALE, "k_scale", placement.k_scale, 1},
                        {v1::BUFFER_ROLE_V_SCALE, "v_scale", placement.v_scale, 1}};
  for (const Role& role : roles) {
    if (IsScale(role.role) && !HasScales(problem)) continue;
    const bool is_kv = role.role == v1::BUFFER_ROLE_K || role.role == v1::BUFFER_ROLE_V;
    const Sizes sizes = IsScale(role.role) ? Sizes{problem.batch, problem.heads_kv, 1} : SizesOf(problem, is_kv);
    const Spacing own = IsScale(role.role) ? OwnPlacement(problem).k_scale : OwnSpacing(problem, is_kv);
    const Dimension dimensions[] = {{Stride::DIMENSION_BATCH, is_kv && problem.page_size > 0 ? "page" : "sequence",
                                     sizes.batch, own.batch, role.given.batch},
                                    {Stride::DIMENSION_HEAD, "head", sizes.heads, own.head, role.given.head},
                                    {Stride::DIMENSION_ROW, "row", sizes.rows, own.row, role.given.row}};
    for (const Dimension& dimension : dimensions) {
      if (dimension.given == dimension.own || dimension.size == 1) continue;
      if (absl::Status status = Check(role, dimension, named); !status.ok()) return status;
      Stride stride;
      stride.set_role(role.role);
      stride.set_dimension(dimension.dimension);
      Place(stride, dimension.given, recipe);
    }
  }
  if (placement.softmax_scale != 0) {
    if (absl::Status status = PlaceScale(placement.softmax_scale, problem, recipe); !status.ok()) return status;
  }
  return recipe;
}

}  // namespace attune::launch
