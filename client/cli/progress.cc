#include "client/cli/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/styled_text.h"
#include "client/cli/text.h"
#include "proto/attune/problem.h"
#include "proto/attune/progress_words.h"
#include "proto/attune/quote.h"

namespace attune::cli {
namespace {

constexpr size_t kWidestBar = 40;
constexpr size_t kNarrowestBar = 10;
constexpr size_t kLeastMessage = 12;  // columns that are worth showing
constexpr size_t kAroundBar = 3;      // its brackets and the space behind it

std::string Bar(double share, size_t width) {
  const auto filled = static_cast<size_t>(share * static_cast<double>(width));
  std::string bar(width, ' ');
  std::fill_n(bar.begin(), filled, '=');
  if (filled < width) bar[filled] = '>';
  return absl::StrCat("[", bar, "]");
}

// Figures in the order of their weight: those that fit into `width`, 0 for all.
std::string Fitting(const std::vector<std::string>& figures, size_t width) {
  std::string text;
  for (const std::string& figure : figures) {
    const size_t wanted = text.size() + (text.empty() ? 0 : 2) + figure.size();
    if (width > 0 && wanted > width && !text.empty()) break;
    absl::StrAppend(&text, text.empty() ? "" : "  ", figure);
  }
  return text;
}

// "on cuda:0, cuda:1, without cuda:2" of a tuning on several cards, behind whose trials there is one; empty otherwise.
std::string CardsText(const v1::OperationProgress& progress) {
  std::string at_work, lost;
  for (const v1::CardShare& card : progress.cards()) {
    std::string& list = card.lost().empty() ? at_work : lost;
    if (card.at_work() || !card.lost().empty()) absl::StrAppend(&list, list.empty() ? "" : ", ", card.device_id());
  }
  if (!at_work.empty()) at_work.insert(0, "on ");
  if (lost.empty()) return at_work;
  return absl::StrCat(at_work, at_work.empty() ? "without " : ", without ", lost);
}

bool IsSweep(const v1::OperationProgress& progress) { return progress.problems_total() > 0; }

std::vector<std::string> SweepFigures(const v1::OperationProgress& progress) {
  std::vector<std::string> figures = {
      absl::StrCat(progress.problems_done(), "/", progress.problems_total(), " problems")};
  if (progress.has_eta()) figures.push_back(absl::StrCat("ETA ", ClockText(FromProto(progress.eta()))));
  return figures;
}

// Those that are known. A sweep's ETA is none of its problem's.
std::vector<std::string> TrialFigures(const v1::OperationProgress& progress) {
  std::vector<std::string> figures = {absl::StrCat(progress.trials_done(), "/", progress.trials_total(), " trials")};
  if (const double rate = TrialsPerSecond(progress); rate > 0) {
    figures.push_back(absl::StrFormat("%.*f/s", rate < 0.1 ? 2 : 1, rate));
  }
  if (progress.has_eta() && !IsSweep(progress)) {
    figures.push_back(absl::StrCat("ETA ", ClockText(FromProto(progress.eta()))));
  }
  if (progress.compiles_total() > progress.compiles_done()) {
    figures.push_back(absl::StrCat("compiled ", progress.compiles_done(), "/", progress.compiles_total()));
  }
  if (progress.device_busy() > 0) figures.push_back(absl::StrCat("device ", Share(progress.device_busy()), " busy"));
  if (progress.trials_reused() > 0) figures.push_back(absl::StrCat(progress.trials_reused(), " reused"));
  if (std::string cards = CardsText(progress); !cards.empty()) figures.push_back(std::move(cards));
  return figures;
}

// As wide a bar as there is room for beside the figures; without one where there is none.
std::string BarLine(int64_t done, int64_t total, const std::vector<std::string>& figures, size_t width, bool colored) {
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0., 1.);
  const std::string text = Fitting(figures, width);
  const size_t room = width == 0 ? kWidestBar + kAroundBar : width - std::min(width, text.size());
  StyledLine line;
  if (room >= kNarrowestBar + kAroundBar) {
    line.Add(Bar(share, std::min(kWidestBar, room - kAroundBar)), Color::kGreen).Add(" ");
  }
  return line.Add(text).Render(width, colored);
}

}  // namespace

double TrialsPerSecond(const v1::OperationProgress& progress) {
  if (IsSweep(progress)) return 0;
  const double seconds = absl::ToDoubleSeconds(FromProto(progress.elapsed()));
  const auto run = static_cast<double>(std::max<int64_t>(0, progress.trials_done() - progress.trials_reused()));
  return seconds > 0 ? run / seconds : 0;
}

std::string WaitText(const v1::OperationProgress& progress) {
  if (progress.queue_position() == 0) return "";
  return absl::StrCat(Counted(progress.queue_position(), "job"), " ahead: waiting for ", progress.waits_for(),
                      progress.waits_for_title().empty() ? "" : absl::StrCat(" (", progress.waits_for_title(), ")"));
}

std::vector<std::string> RenderProgress(const v1::Operation& operation, size_t width, bool colored) {
  const v1::OperationProgress& progress = operation.progress();
  std::vector<std::string> lines;
  StyledLine title;
  const std::string phase = absl::StrCat("  ", Word(progress.phase()));
  const std::string what = Printable(operation.title().empty() ? operation.name() : operation.title());
  title.Add(width > phase.size() ? Clip(what, width - phase.size()) : what, Color::kBold).Add(phase, Color::kCyan);
  const std::string waits = WaitText(progress);
  if (waits.empty() && !progress.message().empty() && progress.message() != Word(progress.phase())) {
    const std::string message = absl::StrCat("  ", Printable(progress.message()));
    const size_t before = DisplayWidth(what) + phase.size();
    if (width == 0 || before + kLeastMessage <= width) {
      title.Add(width == 0 ? message : Clip(message, width - before), Color::kDim);
    }
  }
  lines.push_back(title.Render(width, colored));
  if (!waits.empty()) lines.push_back(StyledLine().Add(waits, Color::kYellow).Render(width, colored));
  if (IsSweep(progress)) {
    lines.push_back(
        BarLine(progress.problems_done(), progress.problems_total(), SweepFigures(progress), width, colored));
    if (progress.trials_total() > 0) {
      lines.push_back(StyledLine().Add(Fitting(TrialFigures(progress), width)).Render(width, colored));
    }
  } else if (progress.trials_total() > 0) {
    lines.push_back(BarLine(progress.trials_done(), progress.trials_total(), TrialFigures(progress), width, colored));
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

std::string NotableMessage(const v1::OperationProgress& progress) {
  if (absl::StartsWith(progress.message(), kWaitingForStore)) return OneLine(progress.message());
  const bool before_trials = progress.phase() == v1::OperationProgress::PHASE_QUEUED ||
                             progress.phase() == v1::OperationProgress::PHASE_ENUMERATE ||
                             progress.phase() == v1::OperationProgress::PHASE_REFERENCE;
  return before_trials && !IsSweep(progress) ? OneLine(progress.message()) : "";
}

std::string ProgressLogLine(const v1::Operation& operation) {
  const v1::OperationProgress& progress = operation.progress();
  std::string line = absl::StrCat(operation.name(), " ", Word(progress.phase()));
  if (const std::string waits = WaitText(progress); !waits.empty()) absl::StrAppend(&line, "  ", waits);
  if (IsSweep(progress)) absl::StrAppend(&line, "  ", Fitting(SweepFigures(progress), 0));
  if (progress.trials_total() > 0) absl::StrAppend(&line, "  ", Fitting(TrialFigures(progress), 0));
  if (progress.has_best()) {
    absl::StrAppend(&line, "  best ", Micros(progress.best().timing().median_us()), " us  ",
                    VariantText(progress.best().variant()));
  }
  if (const std::string message = NotableMessage(progress); !message.empty()) absl::StrAppend(&line, "  ", message);
  return line;
}

}  // namespace attune::cli
