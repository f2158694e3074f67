#include "server/space/launch.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/space/evaluated.h"
#include "server/space/strides.h"
#include "server/space/tensor_map.h"

namespace attune::space {
namespace {

using family::v1::Argument;
using family::v1::Launch;

// Far beyond what models use; a manifest that says more has a mistake.
constexpr double kMostScaleRatio = 1e6;

// `field` is "...grid_", "...block_" or "...cluster_".
absl::Status EvaluateDim(const Evaluator& evaluator, const std::string& field, const std::string& x,
                         const std::string& y, const std::string& z, v1::Dim3* out) {
  const absl::StatusOr<int64_t> sizes[] = {WholeOr(evaluator, field + "x", x, 1, 1),
                                           WholeOr(evaluator, field + "y", y, 1, 1),
                                           WholeOr(evaluator, field + "z", z, 1, 1)};
  for (const absl::StatusOr<int64_t>& size : sizes) {
    if (!size.ok()) return size.status();
  }
  out->set_x(*sizes[0]);
  out->set_y(*sizes[1]);
  out->set_z(*sizes[2]);
  return absl::OkStatus();
}

absl::Status EvaluateScaleRatio(const Evaluator& evaluator, const std::string& field, const std::string& ratio,
                                v1::KernelArg* to) {
  if (ratio.empty()) return absl::OkStatus();
  const double value = evaluator.Value(ratio);
  if (!(value >= 0 && value <= kMostScaleRatio)) {
    return Unusable(field, ratio, value, absl::StrCat("0 to ", kMostScaleRatio));
  }
  to->set_max_scale_ratio(static_cast<float>(value));
  return absl::OkStatus();
}

absl::Status EvaluateArgument(const Evaluator& evaluator, const std::string& field, const Argument& from,
                              const Problem& problem, const std::map<std::string, int>& scratch, v1::KernelArg* to) {
  switch (from.kind_case()) {
    case Argument::kBuffer:
      to->mutable_buffer()->set_role(from.buffer());
      return absl::OkStatus();
    case Argument::kScratch:
      to->mutable_buffer()->set_role(v1::BUFFER_ROLE_SCRATCH);
      to->mutable_buffer()->set_scratch(scratch.at(from.scratch()));
      return absl::OkStatus();
    case Argument::kI32: {
      absl::StatusOr<int64_t> value =
          Whole(evaluator, field, from.i32(), std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
      if (value.ok()) to->set_i32(static_cast<int32_t>(*value));
      return value.status();
    }
    case Argument::kI64: {
      absl::StatusOr<int64_t> value = Whole(evaluator, field, from.i64(), -kMaxExact, kMaxExact);
      if (value.ok()) to->set_i64(*value);
      return value.status();
    }
    case Argument::kF32: {
      const double value = evaluator.Value(from.f32());
      if (!(std::abs(value) <= double{std::numeric_limits<float>::max()})) {
        return Unusable(field, from.f32(), value, "finite floats");
      }
      to->set_f32(static_cast<float>(value));
      return EvaluateScaleRatio(evaluator, field + ".max_scale_ratio", from.max_scale_ratio(), to);
    }
    case Argument::kStride:
      to->set_i64(StrideOf(problem, from.stride()));
      *to->mutable_stride() = from.stride();
      return absl::OkStatus();
    case Argument::kTensorMap:
      return EvaluateTensorMap(evaluator, field + ".tensor_map", from.tensor_map(), problem, scratch,
                               to->mutable_tensor_map());
    case Argument::KIND_NOT_SET:
      break;
  }
  return absl::InternalError("an argument without a kind passed the manifest's check");
}

// No cluster where none is asked for, nor one of a single CTA.
absl::Status EvaluateCluster(const Evaluator& evaluator, const std::string& field, const Launch& from,
                             v1::KernelLaunch* to) {
  v1::Dim3 cluster;
  absl::Status status =
      EvaluateDim(evaluator, field + "cluster_", from.cluster_x(), from.cluster_y(), from.cluster_z(), &cluster);
  if (status.ok() && (cluster.x() > 1 || cluster.y() > 1 || cluster.z() > 1)) *to->mutable_cluster() = cluster;
  return status;
}

}  // namespace

absl::Status EvaluateLaunch(const Evaluator& evaluator, const Launch& from, const Problem& problem,
                            const std::map<std::string, int>& scratch, bool is_first, v1::KernelLaunch* to) {
  const std::string field = absl::StrCat("launches '", from.entry(), "': ");
  to->set_entry(from.entry());
  absl::Status status =
      EvaluateDim(evaluator, field + "grid_", from.grid_x(), from.grid_y(), from.grid_z(), to->mutable_grid());
  if (!status.ok()) return status;
  status =
      EvaluateDim(evaluator, field + "block_", from.block_x(), from.block_y(), from.block_z(), to->mutable_block());
  if (!status.ok()) return status;
  if (status = EvaluateCluster(evaluator, field, from, to); !status.ok()) return status;
  absl::StatusOr<int64_t> shared =
      WholeOr(evaluator, field + "dynamic_shared_bytes", from.dynamic_shared_bytes(), 0, 0);
  if (!shared.ok()) return shared.status();
  to->set_dynamic_shared_bytes(*shared);
  for (int i = 0; i < from.args_size(); ++i) {
    status = EvaluateArgument(evaluator, absl::StrCat(field, "args[", i, "]"), from.args(i), problem, scratch,
                              to->add_args());
    if (!status.ok()) return status;
  }
  if (!from.overlaps_previous().empty() && evaluator.Holds(from.overlaps_previous())) {
    if (is_first) {
      return absl::InvalidArgumentError(absl::StrCat(field, "overlaps_previous is '", from.overlaps_previous(),
                                                     "', which holds; the recipe's first launch must not overlap"));
    }
    to->set_overlaps_previous(true);
  }
  return absl::OkStatus();
}

}  // namespace attune::space
