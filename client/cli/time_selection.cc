#include "client/cli/time_selection.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "proto/attune/quote.h"

namespace attune::cli {
namespace {

// The moment before which a date's times are.
std::optional<absl::Time> EndOf(const std::string& date) {
  absl::CivilDay day;
  if (absl::ParseCivilTime(date, &day)) return absl::FromCivil(day + 1, absl::LocalTimeZone());
  absl::CivilMinute minute;
  if (absl::ParseCivilTime(date, &minute)) return absl::FromCivil(minute, absl::LocalTimeZone());
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, date, &time, &error)) return time;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<v1::TimeSelection> ParseSelection(absl::string_view argument, absl::string_view text) {
  v1::TimeSelection selection;
  if (text.empty() || text == "now") return selection;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto& [key, value] = pair;
    std::string* const field = key == "device"      ? selection.mutable_device_id()
                               : key == "toolchain" ? selection.mutable_toolchain()
                               : key == "driver"    ? selection.mutable_driver()
                               : key == "family"    ? selection.mutable_family()
                                                    : nullptr;
    if (value.empty() || (field == nullptr && key != "date")) {
      return absl::InvalidArgumentError(absl::StrCat(argument, " has ", Quoted(part),
                                                     "; allowed: date=, device=, toolchain=, driver= or family= with ",
                                                     "a value, with commas between, or now"));
    }
    if (field != nullptr) {
      *field = value;
      continue;
    }
    const std::optional<absl::Time> end = EndOf(value);
    if (!end.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(argument, " has the date ", Quoted(value), "; allowed: 2026-11-01, 2026-11-01T06:00"));
    }
    selection.mutable_end_time()->set_seconds(absl::ToUnixSeconds(*end));
  }
  return selection;
}

}  // namespace attune::cli
