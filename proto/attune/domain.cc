#include "proto/attune/domain.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attune {
namespace {

using v1::Domain;
using v1::Varying;

v1::Varying Place(Varying::Field field, int launch, int index, int part = 0) {
  v1::Varying place;
  place.set_field(field);
  place.set_launch(launch);
  place.set_index(index);
  place.set_part(part);
  return place;
}

bool SamePlace(const Varying& a, const Varying& b) {
  return a.field() == b.field() && a.launch() == b.launch() && a.index() == b.index() && a.part() == b.part();
}

using Change = std::function<int64_t(const Varying&, int64_t)>;

void ChangeMap(v1::TensorMap& map, int launch, int index, const Change& change) {
  for (int i = 0; i < map.dims_size(); ++i) {
    map.set_dims(i, change(Place(Varying::FIELD_TENSOR_MAP_DIM, launch, index, i), map.dims(i)));
  }
  for (int i = 0; i < map.strides_size(); ++i) {
    map.set_strides(i, change(Place(Varying::FIELD_TENSOR_MAP_STRIDE, launch, index, i), map.strides(i)));
  }
  map.set_base_offset(change(Place(Varying::FIELD_TENSOR_MAP_OFFSET, launch, index), map.base_offset()));
}

void ChangeLaunch(v1::KernelLaunch& launch, int number, const Change& change) {
  v1::Dim3& grid = *launch.mutable_grid();
  grid.set_x(change(Place(Varying::FIELD_GRID, number, 0), grid.x()));
  grid.set_y(change(Place(Varying::FIELD_GRID, number, 1), grid.y()));
  grid.set_z(change(Place(Varying::FIELD_GRID, number, 2), grid.z()));
  launch.set_dynamic_shared_bytes(
      change(Place(Varying::FIELD_DYNAMIC_SHARED_BYTES, number, 0), launch.dynamic_shared_bytes()));
  for (int i = 0; i < launch.args_size(); ++i) {
    v1::KernelArg& arg = *launch.mutable_args(i);
    if (arg.has_i32()) {
      arg.set_i32(static_cast<int32_t>(change(Place(Varying::FIELD_ARG, number, i), arg.i32())));
    } else if (arg.has_i64()) {
      arg.set_i64(change(Place(Varying::FIELD_ARG, number, i), arg.i64()));
    } else if (arg.has_tensor_map()) {
      ChangeMap(*arg.mutable_tensor_map(), number, i, change);
    }
  }
}

bool FitsItsPlace(const v1::LaunchRecipe& recipe, const Varying& place, int64_t value) {
  if (place.field() != Varying::FIELD_ARG || !recipe.launches(place.launch()).args(place.index()).has_i32())
    return true;
  return value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
}

}  // namespace

std::vector<Domain::Axis> AxesOf(const Problem& problem) {
  if (problem.seq_q == problem.seq_kv) return {Domain::AXIS_Q_AND_KV, Domain::AXIS_BATCH};
  return {Domain::AXIS_KV, Domain::AXIS_Q, Domain::AXIS_BATCH};
}

int64_t LengthAlong(Domain::Axis axis, const Problem& problem) {
  if (axis == Domain::AXIS_BATCH) return problem.batch;
  return axis == Domain::AXIS_KV ? problem.seq_kv : problem.seq_q;
}

Problem WithLength(Domain::Axis axis, int64_t length, Problem problem) {
  if (axis == Domain::AXIS_BATCH) problem.batch = length;
  if (axis == Domain::AXIS_Q || axis == Domain::AXIS_Q_AND_KV) problem.seq_q = length;
  if (axis == Domain::AXIS_KV || axis == Domain::AXIS_Q_AND_KV) problem.seq_kv = length;
  return problem;
}

absl::StatusOr<int64_t> ValueAt(const v1::Step& step, int64_t length) {
  int64_t shifted = 0;
  if (step.divide() < 1 || __builtin_add_overflow(length, step.add(), &shifted) || shifted < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a step of divide ", step.divide(), " and add ", step.add(),
                                                   " at length ", length,
                                                   "; divide must be at least 1, and length + add from 0 to 2^63 - 1"));
  }
  int64_t rise = 0;
  int64_t value = 0;
  if (__builtin_mul_overflow(step.slope(), shifted / step.divide(), &rise) ||
      __builtin_add_overflow(step.base(), rise, &value)) {
    return absl::InvalidArgumentError(absl::StrCat("a step of base ", step.base(), " and slope ", step.slope(),
                                                   ", which at length ", length, " comes to no 64-bit integer"));
  }
  return value;
}

void ChangeNumbers(v1::LaunchRecipe& recipe, const Change& change) {
  for (int i = 0; i < recipe.scratch_size(); ++i) {
    v1::ScratchBuffer& scratch = *recipe.mutable_scratch(i);
    scratch.set_bytes(change(Place(Varying::FIELD_SCRATCH_BYTES, 0, i), scratch.bytes()));
  }
  for (int i = 0; i < recipe.launches_size(); ++i) ChangeLaunch(*recipe.mutable_launches(i), i, change);
}

absl::StatusOr<v1::LaunchRecipe> RecipeAt(v1::LaunchRecipe recipe, const Domain& domain, int64_t length) {
  int found = 0;
  absl::Status status;
  ChangeNumbers(recipe, [&](const Varying& place, int64_t value) {
    const auto varying = std::find_if(domain.varying().begin(), domain.varying().end(),
                                      [&](const Varying& one) { return SamePlace(one, place); });
    if (varying == domain.varying().end()) return value;
    ++found;
    const absl::StatusOr<int64_t> there = ValueAt(varying->step(), length);
    if (!there.ok()) {
      status = absl::InvalidArgumentError(
          absl::StrCat("domain: ", Varying::Field_Name(place.field()), " has ", there.status().message()));
      return value;
    }
    if (FitsItsPlace(recipe, place, *there)) return *there;
    status = absl::InvalidArgumentError(absl::StrCat("domain: argument ", place.index(), " of launch ", place.launch(),
                                                     " comes to ", *there, ", which is no 32-bit integer"));
    return value;
  });
  if (!status.ok()) return status;
  if (found != domain.varying_size()) {
    return absl::InvalidArgumentError(absl::StrCat("domain: ", domain.varying_size() - found, " of its ",
                                                   domain.varying_size(), " numbers are not in the recipe"));
  }
  return recipe;
}

absl::string_view Word(Domain::Axis axis) {
  switch (axis) {
    case Domain::AXIS_KV:
      return "kv";
    case Domain::AXIS_Q:
      return "q";
    case Domain::AXIS_Q_AND_KV:
      return "q=kv";
    case Domain::AXIS_BATCH:
      return "batch";
    default:
      return "?";
  }
}

std::string RangesText(const google::protobuf::RepeatedPtrField<Domain>& domains) {
  std::string text;
  for (const Domain::Axis axis : {Domain::AXIS_KV, Domain::AXIS_Q, Domain::AXIS_Q_AND_KV, Domain::AXIS_BATCH}) {
    int64_t low = std::numeric_limits<int64_t>::max();
    int64_t high = 0;
    for (const Domain& domain : domains) {
      if (domain.axis() != axis) continue;
      low = std::min(low, domain.low());
      high = std::max(high, domain.high());
    }
    if (high > 0) absl::StrAppend(&text, text.empty() ? "" : ", ", Word(axis), " ", low, "..", high);
  }
  return text;
}

}  // namespace attune
