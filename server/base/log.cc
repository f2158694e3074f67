#include "server/base/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "proto/attune/quote.h"
#include "server/base/log_budget.h"
#include "server/base/log_journal.h"

namespace attune {
namespace {

std::atomic<LogFormat> log_format{LogFormat::kText};
std::atomic<LogLevel> least_level{LogLevel::kInfo};
std::atomic<bool> with_priorities{false};

// As logfmt reads it back: quoted where it has to be, control characters and what is not UTF-8 escaped.
std::string FieldValue(absl::string_view value) {
  const std::string printable = Printable(absl::StrReplaceAll(value, {{"\\", "\\\\"}}));
  if (!value.empty() && printable == value && value.find_first_of(" \"=") == absl::string_view::npos) {
    return printable;
  }
  return absl::StrCat("\"", absl::StrReplaceAll(printable, {{"\"", "\\\""}}), "\"");
}

constexpr absl::string_view kLevels[] = {"debug", "info", "warning", "error"};

// syslog's, for the journal.
absl::string_view PriorityOf(LogLevel level) {
  if (!with_priorities) return "";
  constexpr absl::string_view kPriorities[] = {"<7>", "<6>", "<4>", "<3>"};
  return kPriorities[static_cast<int>(level)];
}

absl::string_view NameOf(LogLevel level) { return kLevels[static_cast<int>(level)]; }

void Write(LogLevel level, absl::string_view event, absl::Span<const LogField> fields) {
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  const std::string line =
      absl::StrCat(PriorityOf(level), FormatLogLine(log_format, time, NameOf(level), event, fields), "\n");
  // One write a line: lines of several threads and processes do not mix. A log that cannot be written is not
  // worth stopping for.
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

struct SharedBudget {
  std::mutex mutex;
  LogBudget budget;  // guarded by mutex
};

SharedBudget& Budget() {
  static SharedBudget& budget = *new SharedBudget;  // never destroyed: threads log until the process ends
  return budget;
}

LogBudget::Answer AskBudget(absl::string_view event, int64_t& left_out) {
  // No clock of days, which may be set back.
  const auto uptime = std::chrono::steady_clock::now().time_since_epoch();
  const std::lock_guard<std::mutex> lock(Budget().mutex);
  return Budget().budget.Ask(event, absl::UnixEpoch() + absl::FromChrono(uptime), left_out);
}

}  // namespace

void SetLogFormat(LogFormat format) { log_format = format; }
void SetLogLevel(LogLevel least) { least_level = least; }

void PrefixLogWithPriorities(bool prefix) { with_priorities = prefix; }

bool IsJournal(int descriptor, absl::string_view journal_stream) {
  struct stat file = {};
  return fstat(descriptor, &file) == 0 && journal_stream == absl::StrCat(file.st_dev, ":", file.st_ino);
}

void ForgetLeftOutLines() {
  const std::lock_guard<std::mutex> lock(Budget().mutex);
  Budget().budget = LogBudget();
}

std::string FormatLogLine(LogFormat format, absl::string_view time, absl::string_view level, absl::string_view event,
                          absl::Span<const LogField> fields) {
  if (format == LogFormat::kJson) {
    nlohmann::ordered_json line = {
        {"time", std::string(time)}, {"level", std::string(level)}, {"event", std::string(event)}};
    for (const LogField& field : fields) line[std::string(field.key)] = field.value;
    return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::string line = absl::StrCat(time, " ", level, " ", event);
  for (const LogField& field : fields) absl::StrAppend(&line, " ", field.key, "=", FieldValue(field.value));
  return line;
}

void Log(LogLevel level, absl::string_view event, absl::Span<const LogField> fields) {
  if (level < least_level) return;
  int64_t left_out = 0;
  switch (AskBudget(event, left_out)) {
    case LogBudget::Answer::kLeaveOut:
      return;
    case LogBudget::Answer::kAnnounce: {
      const LogField repeated[] = {{"repeated", event}};
      return Write(LogLevel::kWarning, "log lines are left out", repeated);
    }
    case LogBudget::Answer::kWrite:
      break;
  }
  if (left_out == 0) return Write(level, event, fields);
  std::vector<LogField> more(fields.begin(), fields.end());
  more.emplace_back("left_out", left_out);
  Write(level, event, more);
}

}  // namespace attune
