#include "server/supervisor/answers.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::supervisor {
namespace {

using worker::v1::Request;
using worker::v1::Response;

constexpr std::pair<Request::KindCase, Response::KindCase> kKinds[] = {
    {Request::kDescribe, Response::kDescribe}, {Request::kCompile, Response::kCompile},
    {Request::kPrepare, Response::kPrepare},   {Request::kTrial, Response::kTrial},
    {Request::kPlayOff, Response::kPlayOff},   {Request::kRelease, Response::kRelease},
    {Request::kFloor, Response::kFloor}};

template <typename... What>
absl::Status Wrong(const What&... what) {
  return absl::DataLossError(absl::StrCat("an answer that no worker gives: ", what...));
}

absl::Status CheckVerdict(v1::Verdict verdict, std::initializer_list<v1::Verdict> allowed) {
  if (std::find(allowed.begin(), allowed.end(), verdict) != allowed.end()) return absl::OkStatus();
  return Wrong("verdict ", static_cast<int>(verdict));
}

// Neither is true of NaN.
bool Ordered(double low, double high) { return low >= 0 && low <= high && std::isfinite(high); }

absl::Status CheckTiming(const v1::Timing& timing) {
  if (Ordered(timing.low_us(), timing.median_us()) && Ordered(timing.median_us(), timing.high_us()) &&
      std::isfinite(timing.min_us())) {
    return absl::OkStatus();
  }
  return Wrong("a time of ", timing.median_us(), " us in ", timing.low_us(), " to ", timing.high_us());
}

absl::Status CheckTrial(const worker::v1::TrialResponse& trial) {
  const absl::Status verdict =
      CheckVerdict(trial.verdict(), {v1::VERDICT_OK, v1::VERDICT_INFEASIBLE, v1::VERDICT_WRONG_RESULT,
                                     v1::VERDICT_OUT_OF_BOUNDS, v1::VERDICT_UNSTABLE});
  if (!verdict.ok() || !trial.has_timing()) return verdict;
  // What is wrong was not timed.
  const absl::Status timed = CheckVerdict(trial.verdict(), {v1::VERDICT_OK, v1::VERDICT_UNSTABLE});
  return timed.ok() ? CheckTiming(trial.timing()) : timed;
}

}  // namespace

absl::Status CheckAnswer(const Request& request, const Response& response) {
  if (response.error_code() != 0) return absl::OkStatus();
  if (std::find(std::begin(kKinds), std::end(kKinds), std::pair(request.kind_case(), response.kind_case())) ==
      std::end(kKinds)) {
    return Wrong("one of kind ", static_cast<int>(response.kind_case()), " to a request of kind ",
                 static_cast<int>(request.kind_case()));
  }
  if (response.has_compile()) {
    return CheckVerdict(response.compile().verdict(), {v1::VERDICT_OK, v1::VERDICT_COMPILE_ERROR});
  }
  if (response.has_floor()) return CheckTiming(response.floor().timing());
  if (response.has_trial()) return CheckTrial(response.trial());
  for (const worker::v1::TrialResponse& result : response.play_off().results()) {
    if (absl::Status status = CheckTrial(result); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace attune::supervisor
