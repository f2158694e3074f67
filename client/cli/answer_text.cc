#include "client/cli/answer_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/json.h"
#include "client/cli/text.h"
#include "client/cli/trial_text.h"
#include "proto/attune/domain.h"
#include "proto/attune/objective.h"

namespace attune::cli {
namespace {

constexpr int kMostTies = 5;  // that are listed

Color ColorOf(v1::Provenance provenance) {
  return provenance == v1::PROVENANCE_EXACT || provenance == v1::PROVENANCE_TIE ? Color::kGreen : Color::kYellow;
}

std::string BufferText(const v1::LaunchRecipe& recipe, const v1::KernelArg::Buffer& buffer) {
  if (buffer.role() != v1::BUFFER_ROLE_SCRATCH) {
    return std::string(absl::StripPrefix(v1::BufferRole_Name(buffer.role()), "BUFFER_ROLE_"));
  }
  const int index = buffer.scratch();
  return index >= 0 && index < recipe.scratch_size() ? recipe.scratch(index).name() : absl::StrCat("scratch", index);
}

// "map(K 128x1000 by 64x128)"; of none "map()".
std::string TensorMapText(const v1::LaunchRecipe& recipe, const v1::TensorMap& map) {
  if (!map.has_base()) return "map()";
  return absl::StrCat("map(", BufferText(recipe, map.base()), " ", absl::StrJoin(map.dims(), "x"), " by ",
                      absl::StrJoin(map.box(), "x"), ")");
}

std::string ArgumentText(const v1::LaunchRecipe& recipe, const v1::KernelArg& arg) {
  switch (arg.value_case()) {
    case v1::KernelArg::kBuffer:
      return BufferText(recipe, arg.buffer());
    case v1::KernelArg::kTensorMap:
      return TensorMapText(recipe, arg.tensor_map());
    case v1::KernelArg::kI32:
      return absl::StrCat(arg.i32());
    case v1::KernelArg::kI64:
      return absl::StrCat(arg.i64(), "L");
    case v1::KernelArg::kF32:
      return absl::StrCat(arg.f32(), "f");
    default:
      return "?";
  }
}

std::string Extent(const v1::Dim3& dim) { return absl::StrCat(dim.x(), "x", dim.y(), "x", dim.z()); }

std::string GridText(const v1::KernelLaunch& launch) {
  if (!launch.has_cluster()) return Extent(launch.grid());
  return absl::StrCat(Extent(launch.grid()), " in ", Extent(launch.cluster()));
}

// Nobody has timed this problem: what is expected, and from which time.
std::string NearestTimeText(const v1::GetBestResponse& answer) {
  const std::string problem = NearestProblem(answer);
  const v1::PredictedTime& predicted = answer.predicted();
  const std::string expected = answer.has_predicted()
                                   ? absl::StrCat("predicted ", Micros(predicted.us()), " us (four of five in ",
                                                  Micros(predicted.low_us()), "..", Micros(predicted.high_us()), ")")
                                   : "not measured here";
  if (!answer.has_timing()) return expected;
  return absl::StrCat(expected, "; measured at ", problem.empty() ? "the nearest problem" : problem, ": ",
                      Micros(answer.timing().median_us()), " us");
}

void PrintRecipe(Session& session, const v1::LaunchRecipe& recipe) {
  session.Print("\nLaunches, in order on one stream:");
  Table launches(
      {{"kernel"}, {"grid", kNumber}, {"block", kNumber}, {"dynamic shared", kNumber}, {"arguments", kFlexible}});
  for (int i = 0; i < recipe.launches_size(); ++i) {
    const v1::KernelLaunch& launch = recipe.launches(i);
    launches.Row({absl::StrCat(launch.entry(), i == recipe.main_launch() ? " *" : "",
                               launch.overlaps_previous() ? " (overlaps)" : ""),
                  GridText(launch), Extent(launch.block()), Bytes(launch.dynamic_shared_bytes()),
                  absl::StrJoin(launch.args(), ", ", [&](std::string* out, const v1::KernelArg& arg) {
                    absl::StrAppend(out, ArgumentText(recipe, arg));
                  })});
  }
  session.Print(launches);
  for (const v1::ScratchBuffer& scratch : recipe.scratch()) {
    session.Print(absl::StrCat("scratch ", scratch.name(), ": ", scratch.bytes(), " bytes",
                               scratch.zero_before_first_run() ? ", all zero before the first run" : ""));
  }
}

}  // namespace

void PrintAnswer(Session& session, const v1::GetBestResponse& answer) {
  Table fields = FieldTable();
  fields.Row({"problem", absl::StrCat(ProblemText(answer.problem()), " on ", answer.device_id())});
  fields.Row({"variant", {VariantText(answer.variant()), Color::kBold}});
  fields.Row({"provenance",
              {absl::StrCat(Word(answer.provenance()), answer.provenance_detail().empty() ? "" : ": ",
                            answer.provenance_detail()),
               ColorOf(answer.provenance())}});
  if (IsByEnergy(answer.objective())) fields.Row({"best by", std::string(AmountName(answer.objective()))});
  if (answer.has_claim()) fields.Row({"search", ClaimText(answer.claim())});
  if (answer.pinned())
    fields.Row({"pinned", "served even when others are faster; to unpin: attune serve PROBLEM --unpin"});
  const bool own = !IsOfNearest(answer);
  if (own && answer.has_timing()) AddTiming(answer.timing(), answer.measure_time(), &fields);
  if (!own && (answer.has_timing() || answer.has_predicted())) fields.Row({"time", NearestTimeText(answer)});
  if (answer.has_geometry()) AddGeometry(answer.geometry(), answer.device_id(), &fields);
  if (own && answer.has_accuracy()) AddAccuracy(answer.accuracy(), &fields);
  for (const v1::Baseline& baseline : answer.baselines()) {
    if (!own || answer.timing().median_us() <= 0) break;
    fields.Row({"against", absl::StrCat(Speedup(baseline.median_us() / answer.timing().median_us()), " ",
                                        baseline.contender(), " (", Micros(baseline.median_us()), " us)")});
  }
  for (int i = 0; i < std::min(answer.ties_size(), kMostTies); ++i) {
    fields.Row({"tied with", VariantText(answer.ties(i))});
  }
  if (answer.ties_size() > kMostTies) {
    fields.Row({"", absl::StrCat("and ", answer.ties_size() - kMostTies, " more; --format=json has all")});
  }
  if (!answer.trial().empty()) fields.Row({"trial", answer.trial()});
  if (answer.has_promote_time()) fields.Row({"since", LocalTime(answer.promote_time())});
  if (answer.artifact_state() != v1::ARTIFACT_STATE_UNSPECIFIED) {
    const bool ready = answer.artifact_state() == v1::ARTIFACT_STATE_READY;
    fields.Row({"code", {CodeText(answer), ready ? Color::kGreen : Color::kYellow}});
  }
  if (answer.domains_size() > 0) fields.Row({"holds for", RangesText(answer.domains())});
  if (!answer.artifact_sha256().empty()) fields.Row({"artifact", absl::StrCat("SHA-256 ", answer.artifact_sha256())});
  session.Print(fields);
  if (answer.recipe().launches_size() > 0) PrintRecipe(session, answer.recipe());
}

}  // namespace attune::cli
