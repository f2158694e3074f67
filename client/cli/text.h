// Numbers, times and enum values as people read them, and back from what they type.
#ifndef ATTUNE_CLIENT_CLI_TEXT_H_
#define ATTUNE_CLIENT_CLI_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/fleet.pb.h"
#include "attune/v1/service.pb.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace attune::cli {

// "within 2 % of the best of 840 with 95 % (58 tried)"
std::string ClaimText(const v1::SearchClaim& claim);
std::string Micros(double us);                                   // "41.20"; "-" when there is none (0 or less)
std::string Share(double share);                                 // "93%"
std::string Bytes(int64_t bytes);                                // "99 KiB", "512 B"
std::string Speedup(double factor);                              // "1.31x"
std::string ClockText(absl::Duration duration);                  // "0:26", "1:02:03"
std::string DurationText(absl::Duration duration);               // "26 s", "1 min 11 s", "2 h 5 min"
std::string Counted(int64_t count, absl::string_view noun);      // "1 CTA", "2 CTAs"
std::string Tflops(double tflops);                               // "12.3 TFLOP/s", "45.6 GFLOP/s"; "" for 0
std::string LocalTime(const google::protobuf::Timestamp& time);  // "2026-11-20 18:53"; "" when unset
std::string Iso(const google::protobuf::Timestamp& time);        // "2026-11-20T18:53:44Z"; "" when unset
absl::Duration FromProto(const google::protobuf::Duration& duration);
google::protobuf::Duration ToProto(absl::Duration duration);

// Errors come from anywhere; scripts and people get one line of at most 1,000 columns, a terminal no commands.
std::string OneLine(absl::string_view message);

// Lower or upper case as DESIGN has them: "EXACT", "RUNNING", "cuda", "play-off".
std::string Word(v1::Provenance provenance);
std::string Word(v1::Operation::State state);
std::string Word(v1::OperationProgress::Phase phase);
std::string Word(v1::Backend backend);
std::string Word(v1::SweepReport::Outcome outcome);
std::string Word(v1::ExplainResponse::Bound bound);
std::string Word(v1::EvaluateResult::Decision decision);
std::string Word(v1::ArtifactState state);
std::string Word(v1::Trend::State state);
std::string Word(v1::Host::State state);
std::string Word(v1::CompareTimesResponse::Comparison comparison);

// Of an answer's code: "ready", "being compiled", "none: " and why; "unknown" when the server does not say.
std::string CodeText(const v1::GetBestResponse& answer);

// "attention_wmma:BLOCK_M=64,..."; made from the parameters when the server sent no text.
std::string VariantText(const v1::Variant& variant);

// "30s", "2m", "1h30m"; a unit is needed. InvalidArgument names `option`.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view option, absl::string_view text);
// "hot", "cold" or "l2-warm".
v1::Policy ParsePolicy(absl::string_view text);
// "OK", "wrong_result", ... InvalidArgument lists what is allowed.
absl::StatusOr<v1::Verdict> ParseVerdict(absl::string_view text);
// "trials/12" from "12" or "trials/12".
std::string ResourceName(absl::string_view collection, absl::string_view text);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_TEXT_H_
