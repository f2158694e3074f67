// Structured logs: one line an event on stderr, as logfmt for people or JSON for collectors. Thread-safe.
#ifndef ATTUNE_SERVER_BASE_LOG_H_
#define ATTUNE_SERVER_BASE_LOG_H_

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace attune {

enum class LogFormat { kText, kJson };
void SetLogFormat(LogFormat format);

struct LogField {
  template <typename T>
  LogField(absl::string_view field_key, const T& field_value) : key(field_key), value(absl::StrCat(field_value)) {}
  absl::string_view key;
  std::string value;
};

// `event` says what happened in a few words that stay the same from call to call; what varies is in the fields.
void LogInfo(absl::string_view event, std::initializer_list<LogField> fields = {});
void LogWarning(absl::string_view event, std::initializer_list<LogField> fields = {});
void LogError(absl::string_view event, std::initializer_list<LogField> fields = {});

// The line as written, without its newline. `time` is RFC 3339.
std::string FormatLogLine(LogFormat format, absl::string_view time, absl::string_view level, absl::string_view event,
                          std::initializer_list<LogField> fields);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_LOG_H_
