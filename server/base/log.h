// Structured logs: one line an event on stderr, as logfmt for people or JSON for collectors. Thread-safe.
//
// An event that repeats without end is thinned out (log_budget.h); the line that goes on says left_out=N.
#ifndef ATTUNE_SERVER_BASE_LOG_H_
#define ATTUNE_SERVER_BASE_LOG_H_

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace attune {

enum class LogFormat { kText, kJson };
void SetLogFormat(LogFormat format);

enum class LogLevel { kDebug, kInfo, kWarning, kError };
// What is below it is not written.
void SetLogLevel(LogLevel least);

struct LogField {
  template <typename T>
  LogField(absl::string_view field_key, const T& field_value) : key(field_key), value(absl::StrCat(field_value)) {}
  absl::string_view key;
  std::string value;
};

// `event` says what happened in a few words that stay the same from call to call; what varies is in the fields.
void Log(LogLevel level, absl::string_view event, absl::Span<const LogField> fields);
inline void LogDebug(absl::string_view event, std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kDebug, event, absl::MakeConstSpan(fields.begin(), fields.size()));
}
inline void LogInfo(absl::string_view event, std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kInfo, event, absl::MakeConstSpan(fields.begin(), fields.size()));
}
inline void LogWarning(absl::string_view event, std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kWarning, event, absl::MakeConstSpan(fields.begin(), fields.size()));
}
inline void LogError(absl::string_view event, std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kError, event, absl::MakeConstSpan(fields.begin(), fields.size()));
}

// For tests, which share a process: what was left out of the log before has no effect on what is written from now on.
void ForgetLeftOutLines();

// The line as written, without its newline. `time` is RFC 3339.
std::string FormatLogLine(LogFormat format, absl::string_view time, absl::string_view level, absl::string_view event,
                          absl::Span<const LogField> fields);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_LOG_H_
