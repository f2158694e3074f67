#include "client/cli/text.h"

#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/styled_text.h"
#include "google/protobuf/util/time_util.h"
#include "proto/attune/problem.h"
#include "proto/attune/quote.h"

namespace attune::cli {
namespace {

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

// A proto enum's name without its prefix; "UNSPECIFIED" becomes empty.
std::string WithoutPrefix(absl::string_view name, absl::string_view prefix) {
  name = absl::StripPrefix(name, prefix);
  return name == "UNSPECIFIED" ? "" : std::string(name);
}

std::string Lower(absl::string_view name, absl::string_view prefix) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(WithoutPrefix(name, prefix)), {{"_", "-"}});
}

}  // namespace

std::string Micros(double us) { return us > 0 ? absl::StrFormat("%.2f", us) : "-"; }

std::string Share(double share) { return absl::StrFormat("%.0f%%", share * 100); }

std::string Bytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  const bool whole = value == static_cast<double>(static_cast<int64_t>(value));
  return absl::StrFormat("%.*f %s", whole ? 0 : 1, value, kUnits[unit]);
}

std::string Speedup(double factor) { return absl::StrFormat("%.2fx", factor); }

std::string ClockText(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds >= 3600) return absl::StrFormat("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
}

std::string DurationText(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(duration, absl::Seconds(1)));
  if (seconds < 60) return absl::StrFormat("%d s", seconds);
  if (seconds < 3600) return absl::StrFormat("%d min %d s", seconds / 60, seconds % 60);
  return absl::StrFormat("%d h %d min", seconds / 3600, seconds / 60 % 60);
}

std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string Tflops(double tflops) {
  if (tflops <= 0) return "";
  return tflops >= 1 ? absl::StrFormat("%.1f TFLOP/s", tflops) : absl::StrFormat("%.3g GFLOP/s", tflops * 1000);
}

std::string LocalTime(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "";
  return absl::FormatTime("%Y-%m-%d %H:%M", FromProto(time), absl::LocalTimeZone());
}

std::string Iso(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", FromProto(time), absl::UTCTimeZone());
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  return google::protobuf::util::TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(duration));
}

std::string OneLine(absl::string_view message) {
  constexpr size_t kLongest = 1000;  // columns
  return Clip(Printable(absl::StrJoin(absl::StrSplit(message, absl::ByAnyChar("\r\n"), absl::SkipWhitespace()), "; ")),
              kLongest);
}

std::string Word(v1::Provenance provenance) { return WithoutPrefix(v1::Provenance_Name(provenance), "PROVENANCE_"); }
std::string Word(v1::Operation::State state) { return WithoutPrefix(v1::Operation::State_Name(state), "STATE_"); }
std::string Word(v1::OperationProgress::Phase phase) {
  return Lower(v1::OperationProgress::Phase_Name(phase), "PHASE_");
}
std::string Word(v1::Backend backend) { return Lower(v1::Backend_Name(backend), "BACKEND_"); }
std::string Word(v1::SweepReport::Outcome outcome) {
  return WithoutPrefix(v1::SweepReport::Outcome_Name(outcome), "OUTCOME_");
}
std::string Word(v1::ExplainResponse::Bound bound) {
  return WithoutPrefix(v1::ExplainResponse::Bound_Name(bound), "BOUND_");
}
std::string ClaimText(const v1::SearchClaim& claim) {
  return absl::StrFormat("within %.3g %% of the best of %d with %d %% (%d tried)", claim.within() * 100, claim.of(),
                         static_cast<int>(std::floor(claim.confidence() * 100 + 1e-9)), claim.tried());
}

std::string Word(v1::EvaluateResult::Decision decision) {
  return WithoutPrefix(v1::EvaluateResult::Decision_Name(decision), "DECISION_");
}
std::string Word(v1::ArtifactState state) { return WithoutPrefix(v1::ArtifactState_Name(state), "ARTIFACT_STATE_"); }
std::string Word(v1::Trend::State state) { return WithoutPrefix(v1::Trend::State_Name(state), "STATE_"); }
std::string Word(v1::Host::State state) { return WithoutPrefix(v1::Host::State_Name(state), "STATE_"); }
std::string Word(v1::CompareTimesResponse::Comparison comparison) {
  return WithoutPrefix(v1::CompareTimesResponse::Comparison_Name(comparison), "COMPARISON_");
}

std::string CodeText(const v1::GetBestResponse& answer) {
  switch (answer.artifact_state()) {
    case v1::ARTIFACT_STATE_READY:
      return "ready";
    case v1::ARTIFACT_STATE_COMPILING:
      return "being compiled";
    case v1::ARTIFACT_STATE_NONE:
      return absl::StrCat("none: ", answer.artifact_reason());
    default:
      return "unknown";
  }
}

std::string VariantText(const v1::Variant& variant) {
  if (!variant.text().empty()) return variant.text();
  return absl::StrCat(variant.family(), variant.parameters().empty() ? "" : ":",
                      absl::StrJoin(variant.parameters(), ",", [](std::string* out, const v1::ParameterValue& p) {
                        absl::StrAppend(out, p.name(), "=", p.value());
                      }));
}

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view option, absl::string_view text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration() && duration < absl::InfiniteDuration())
    return duration;
  return absl::InvalidArgumentError(
      absl::StrCat(option, " is ", Quoted(text), "; allowed: durations above 0 with their unit, as 30s, 2m or 1h30m"));
}

v1::Policy ParsePolicy(absl::string_view text) {
  const v1::Policy policy = attune::PolicyOf(text);
  return policy == v1::POLICY_UNSPECIFIED ? v1::POLICY_HOT : policy;
}

absl::StatusOr<v1::Verdict> ParseVerdict(absl::string_view text) {
  std::vector<absl::string_view> allowed;
  for (int value = v1::VERDICT_OK; value <= v1::Verdict_MAX; ++value) {
    const auto verdict = static_cast<v1::Verdict>(value);
    if (absl::EqualsIgnoreCase(text, attune::Word(verdict))) return verdict;
    allowed.push_back(attune::Word(verdict));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--verdict is ", Quoted(text), "; allowed: ", absl::StrJoin(allowed, ", ")));
}

std::string ResourceName(absl::string_view collection, absl::string_view text) {
  const std::string prefix = absl::StrCat(collection, "/");
  return absl::StartsWith(text, prefix) ? std::string(text) : absl::StrCat(prefix, text);
}

}  // namespace attune::cli
