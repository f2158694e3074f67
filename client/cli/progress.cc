#include "client/cli/progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/styled_text.h"
#include "client/cli/text.h"
#include "proto/attune/problem.h"

namespace attune::cli {
namespace {

constexpr size_t kWidestBar = 40;
constexpr size_t kBesideBar = 58;  // room for the figures that follow the bar

std::string Bar(double share, size_t width) {
  const auto filled = static_cast<size_t>(share * static_cast<double>(width));
  std::string bar(width, ' ');
  std::fill_n(bar.begin(), filled, '=');
  if (filled < width) bar[filled] = '>';
  return absl::StrCat("[", bar, "]");
}

// The figures beside the bar, those that are known.
std::string Figures(const v1::OperationProgress& progress) {
  std::string text = absl::StrCat(progress.trials_done(), "/", progress.trials_total(), " trials");
  if (const double rate = TrialsPerSecond(progress); rate > 0) absl::StrAppendFormat(&text, "  %.1f/s", rate);
  if (progress.has_eta()) absl::StrAppend(&text, "  ETA ", ClockText(FromProto(progress.eta())));
  if (progress.device_busy() > 0) absl::StrAppend(&text, "  GPU ", Share(progress.device_busy()), " busy");
  if (progress.compiles_total() > progress.compiles_done()) {
    absl::StrAppend(&text, "  compiled ", progress.compiles_done(), "/", progress.compiles_total());
  }
  if (progress.trials_reused() > 0) absl::StrAppend(&text, "  ", progress.trials_reused(), " reused");
  return text;
}

}  // namespace

double TrialsPerSecond(const v1::OperationProgress& progress) {
  const double seconds = absl::ToDoubleSeconds(FromProto(progress.elapsed()));
  const auto run = static_cast<double>(std::max<int64_t>(0, progress.trials_done() - progress.trials_reused()));
  return seconds > 0 ? run / seconds : 0;
}

std::vector<std::string> RenderProgress(const v1::Operation& operation, size_t width, bool colored) {
  const v1::OperationProgress& progress = operation.progress();
  std::vector<std::string> lines;
  StyledLine title;
  title.Add(operation.title().empty() ? operation.name() : operation.title(), Color::kBold);
  title.Add(absl::StrCat("  ", Word(progress.phase())), Color::kCyan);
  if (!progress.message().empty()) title.Add(absl::StrCat("  ", progress.message()), Color::kDim);
  lines.push_back(title.Render(width, colored));
  if (progress.trials_total() > 0) {
    const double share =
        std::clamp(static_cast<double>(progress.trials_done()) / static_cast<double>(progress.trials_total()), 0., 1.);
    StyledLine bar;
    if (width == 0 || width > kBesideBar + 10) {
      bar.Add(Bar(share, width == 0 ? kWidestBar : std::min(kWidestBar, width - kBesideBar)), Color::kGreen).Add(" ");
    }
    lines.push_back(bar.Add(Figures(progress)).Render(width, colored));
  }
  if (progress.has_best()) {
    StyledLine best;
    best.Add("best ").Add(absl::StrCat(Micros(progress.best().timing().median_us()), " us"), Color::kGreen);
    best.Add(absl::StrCat("  ", VariantText(progress.best().variant())));
    lines.push_back(best.Render(width, colored));
  }
  if (progress.verdicts_size() > 0) {
    StyledLine verdicts;
    for (const v1::VerdictCount& count : progress.verdicts()) {
      verdicts.Add(absl::StrCat(attune::Word(count.verdict()), " ", count.count(), "  "), ColorOf(count.verdict()));
    }
    lines.push_back(verdicts.Render(width, colored));
  }
  return lines;
}

std::string ProgressLogLine(const v1::Operation& operation) {
  const v1::OperationProgress& progress = operation.progress();
  std::string line = absl::StrCat(operation.name(), " ", Word(progress.phase()));
  if (progress.trials_total() > 0) absl::StrAppend(&line, "  ", Figures(progress));
  if (progress.has_best()) {
    absl::StrAppend(&line, "  best ", Micros(progress.best().timing().median_us()), " us  ",
                    VariantText(progress.best().variant()));
  }
  return line;
}

}  // namespace attune::cli
