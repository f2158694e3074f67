#include "client/cli/sweep_reports.h"

#include <tinyxml2.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/cli/text.h"
#include "proto/attune/quote.h"

namespace attune::cli {
namespace {

using Report = v1::SweepReport;

int64_t Count(const Report& report, Report::Outcome outcome) {
  return std::count_if(report.rows().begin(), report.rows().end(),
                       [outcome](const Report::Row& row) { return row.outcome() == outcome; });
}

std::string Seconds(const Report::Row& row) {
  return absl::StrFormat("%.3f", absl::ToDoubleSeconds(FromProto(row.working_time())));
}

// What a test case that did not pass says.
void AddOutcome(tinyxml2::XMLPrinter& xml, const char* element, const Report::Row& row) {
  xml.OpenElement(element);
  xml.PushAttribute("type", Word(row.outcome()).c_str());
  xml.PushAttribute("message", Printable(TimesText(row)).c_str());
  std::string text = row.detail();
  if (!row.variant().empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", "to time it again: attune evaluate ", row.problem(), " ",
                    row.variant());
  }
  if (!text.empty()) xml.PushText(absl::StrReplaceAll(Printable(text), {{"\\n", "\n"}}).c_str());
  xml.CloseElement();
}

void AddCase(tinyxml2::XMLPrinter& xml, const Report& report, const Report::Row& row) {
  xml.OpenElement("testcase");
  xml.PushAttribute("name", Printable(row.problem()).c_str());
  const std::string& card = row.device_id().empty() ? report.device_id() : row.device_id();
  xml.PushAttribute("classname", Printable(absl::StrCat("attune.", card)).c_str());
  xml.PushAttribute("time", Seconds(row).c_str());
  switch (row.outcome()) {
    case Report::OUTCOME_SLOWER:
      AddOutcome(xml, "failure", row);
      break;
    case Report::OUTCOME_FAILED:
      AddOutcome(xml, "error", row);
      break;
    case Report::OUTCOME_AMBIGUOUS:
    case Report::OUTCOME_SKIPPED:
      AddOutcome(xml, "skipped", row);
      break;
    default:
      break;
  }
  xml.CloseElement();
}

// As workflow commands take a message, and, with more characters that end one, a property.
std::string Message(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}});
}
std::string Property(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}, {":", "%3A"}, {",", "%2C"}});
}

std::string Annotation(const char* level, const Report::Row& row) {
  std::string text = TimesText(row);
  if (!row.detail().empty()) absl::StrAppend(&text, text.empty() ? "" : "; ", row.detail());
  return absl::StrCat("::", level, " title=", Property(absl::StrCat(Word(row.outcome()), " ", row.problem())),
                      "::", Message(text.empty() ? Word(row.outcome()) : text));
}

}  // namespace

std::string TimesText(const Report::Row& row) {
  if (row.before_us() > 0 && row.after_us() > 0) {
    return absl::StrFormat("%.3fx the time: %s us before, %s us now", row.after_us() / row.before_us(),
                           Micros(row.before_us()), Micros(row.after_us()));
  }
  if (row.after_us() > 0) return absl::StrCat(Micros(row.after_us()), " us now");
  return row.before_us() > 0 ? absl::StrCat(Micros(row.before_us()), " us before") : "";
}

std::string JUnitText(const Report& report) {
  double seconds = 0;
  for (const Report::Row& row : report.rows()) seconds += absl::ToDoubleSeconds(FromProto(row.working_time()));
  tinyxml2::XMLPrinter xml;
  xml.PushHeader(/*writeBOM=*/false, /*writeDec=*/true);
  xml.OpenElement("testsuite");
  xml.PushAttribute("name", Printable(report.title().empty() ? "sweep" : report.title()).c_str());
  xml.PushAttribute("tests", report.rows_size());
  xml.PushAttribute("failures", Count(report, Report::OUTCOME_SLOWER));
  xml.PushAttribute("errors", Count(report, Report::OUTCOME_FAILED));
  xml.PushAttribute("skipped", Count(report, Report::OUTCOME_AMBIGUOUS) + Count(report, Report::OUTCOME_SKIPPED));
  xml.PushAttribute("time", absl::StrFormat("%.3f", seconds).c_str());
  for (const Report::Row& row : report.rows()) AddCase(xml, report, row);
  xml.CloseElement();
  return xml.CStr();
}

std::vector<std::string> GitHubAnnotations(const Report& report) {
  std::vector<std::string> lines;
  for (const Report::Row& row : report.rows()) {
    if (row.outcome() == Report::OUTCOME_SLOWER || row.outcome() == Report::OUTCOME_FAILED) {
      lines.push_back(Annotation("error", row));
    } else if (row.outcome() == Report::OUTCOME_AMBIGUOUS || row.outcome() == Report::OUTCOME_MOVED) {
      lines.push_back(Annotation("warning", row));
    }
  }
  if (const int64_t skipped = Count(report, Report::OUTCOME_SKIPPED); skipped > 0) {
    lines.push_back(
        absl::StrCat("::notice title=SKIPPED::", Counted(skipped, "problem"), " lay beyond the sweep's total time"));
  }
  return lines;
}

}  // namespace attune::cli
