#include "server/base/log.h"

#include <unistd.h>

#include <atomic>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace attune {
namespace {

std::atomic<LogFormat> log_format{LogFormat::kText};

std::string Quoted(absl::string_view value) {
  if (!value.empty() && value.find_first_of(" \"=\n\t\\") == absl::string_view::npos) return std::string(value);
  return absl::StrCat("\"", absl::CHexEscape(value), "\"");
}

void Write(absl::string_view level, absl::string_view event, std::initializer_list<LogField> fields) {
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  const std::string line = FormatLogLine(log_format, time, level, event, fields) + "\n";
  // One write a line: lines of several threads and processes do not mix. A log that cannot be written is not
  // worth stopping for.
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void SetLogFormat(LogFormat format) { log_format = format; }

std::string FormatLogLine(LogFormat format, absl::string_view time, absl::string_view level, absl::string_view event,
                          std::initializer_list<LogField> fields) {
  if (format == LogFormat::kJson) {
    nlohmann::ordered_json line = {
        {"time", std::string(time)}, {"level", std::string(level)}, {"event", std::string(event)}};
    for (const LogField& field : fields) line[std::string(field.key)] = field.value;
    return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::string line = absl::StrCat(time, " ", level, " ", event);
  for (const LogField& field : fields) absl::StrAppend(&line, " ", field.key, "=", Quoted(field.value));
  return line;
}

void LogInfo(absl::string_view event, std::initializer_list<LogField> fields) { Write("info", event, fields); }
void LogWarning(absl::string_view event, std::initializer_list<LogField> fields) { Write("warning", event, fields); }
void LogError(absl::string_view event, std::initializer_list<LogField> fields) { Write("error", event, fields); }

}  // namespace attune
