#include "server/store/rows/names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace attune::store {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

std::string InParentheses(const std::vector<int>& numbers) {
  return absl::StrCat("(", absl::StrJoin(numbers, ", "), ")");
}

}  // namespace

std::optional<int64_t> IdOf(absl::string_view collection, absl::string_view name) {
  int64_t id = 0;
  if (!absl::ConsumePrefix(&name, collection) || !absl::SimpleAtoi(name, &id) || id < 1 || absl::StrCat(id) != name) {
    return std::nullopt;
  }
  return id;
}

int64_t ToNanoseconds(const google::protobuf::Timestamp& time) {
  return time.seconds() * kNanosecondsPerSecond + time.nanos();
}

google::protobuf::Timestamp FromNanoseconds(int64_t nanoseconds) {
  google::protobuf::Timestamp time;
  int64_t seconds = nanoseconds / kNanosecondsPerSecond;
  int64_t rest = nanoseconds % kNanosecondsPerSecond;
  if (rest < 0) {
    rest += kNanosecondsPerSecond;
    --seconds;
  }
  time.set_seconds(seconds);
  time.set_nanos(static_cast<int32_t>(rest));
  return time;
}

google::protobuf::Timestamp Now() { return FromNanoseconds(absl::GetCurrentTimeNanos()); }

std::optional<int64_t> EndOf(const v1::Operation& operation) {
  if (!operation.done()) return std::nullopt;
  return ToNanoseconds(operation.has_end_time() ? operation.end_time() : Now());
}

std::string VerdictsOfTheClass() {
  std::vector<int> verdicts;
  for (int verdict = v1::Verdict_MIN; verdict <= v1::Verdict_MAX; ++verdict) {
    if (HoldsForClass(static_cast<v1::Verdict>(verdict))) verdicts.push_back(verdict);
  }
  return InParentheses(verdicts);
}

std::string VerdictsThatMayGo() { return InParentheses({v1::VERDICT_OK, v1::VERDICT_SLOW, v1::VERDICT_LOST}); }

std::string VerdictsOf(const v1::TrialFilter& filter) {
  std::vector<int> verdicts(filter.verdicts().begin(), filter.verdicts().end());
  std::sort(verdicts.begin(), verdicts.end());
  verdicts.erase(std::unique(verdicts.begin(), verdicts.end()), verdicts.end());
  return InParentheses(verdicts);
}

std::string NameOf(const v1::TrialFilter& filter, v1::ListTrialsRequest::Order order) {
  return absl::StrCat(order == v1::ListTrialsRequest::ORDER_FASTEST ? "fastest trials " : "newest trials ",
                      filter.SerializeAsString());
}

std::string NameOf(const IncumbentFilter& filter) {
  return absl::StrCat("incumbents ", filter.problem_text, " ", filter.device_class, " ", filter.device_id, " ",
                      static_cast<int>(filter.policy.value_or(v1::POLICY_UNSPECIFIED)),
                      filter.history ? " history" : " served");
}

std::string NameOf(const RetimingFilter& filter) {
  std::string name = absl::StrCat("retimings\n", filter.problem_text, "\n", filter.device_class, "\n", filter.device_id,
                                  "\n", filter.device_uuid, "\n");
  if (filter.policy.has_value()) absl::StrAppend(&name, static_cast<int>(*filter.policy));
  absl::StrAppend(&name, "\n");
  if (filter.begin != absl::InfinitePast()) absl::StrAppend(&name, absl::ToUnixNanos(filter.begin));
  absl::StrAppend(&name, "\n");
  if (filter.end != absl::InfiniteFuture()) absl::StrAppend(&name, absl::ToUnixNanos(filter.end));
  return name;
}

std::string NameOfBaselines(absl::string_view problem_text, absl::string_view device_id) {
  return absl::StrCat("baselines ", problem_text, " ", device_id);
}

}  // namespace attune::store
