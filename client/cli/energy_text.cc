#include "client/cli/energy_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

// Of the play-off, least energy first.
std::vector<const v1::Trial*> Measured(const v1::TuneResult& result) {
  std::vector<const v1::Trial*> measured;
  for (const v1::Trial& trial : result.play_off()) {
    if (trial.timing().has_energy()) measured.push_back(&trial);
  }
  std::stable_sort(measured.begin(), measured.end(), [](const v1::Trial* a, const v1::Trial* b) {
    return a->timing().energy().joules() < b->timing().energy().joules();
  });
  return measured;
}

// As the options of `serve` and `best`, beside which the others are as they were for what was tuned.
std::string WhereItIsServed(const v1::Trial& winner) {
  return absl::StrCat(winner.device_id().empty() ? "" : " --device ", winner.device_id(),
                      winner.policy() == v1::POLICY_L2_WARM ? " --policy l2-warm" : "");
}

// Whether this play-off has chosen it: one that an earlier tuning chose has that one's times and energy.
bool IsOfThisPlayOff(const v1::Alternative& alternative, const v1::TuneResult& result) {
  const v1::Trial& chosen = alternative.trial();
  return std::any_of(result.play_off().begin(), result.play_off().end(), [&](const v1::Trial& trial) {
    return trial.variant().text() == chosen.variant().text() && trial.timing().has_energy() &&
           trial.timing().energy().joules() == chosen.timing().energy().joules() &&
           trial.timing().median_us() == chosen.timing().median_us();
  });
}

// A line for each that this play-off has chosen, none for what is the winner itself.
std::string Alternatives(const v1::TuneResult& result) {
  std::vector<std::string> lines;
  for (const v1::Alternative& one : result.incumbent().alternatives()) {
    const v1::Timing& timing = one.trial().timing();
    const std::optional<Amount> amount = AmountOf(one.objective(), timing);
    const std::optional<Amount> winners = AmountOf(one.objective(), result.winner().timing());
    if (!IsOfThisPlayOff(one, result) || !amount.has_value() || !winners.has_value()) continue;
    if (!IsCertainlyLess(*amount, *winners)) continue;
    lines.push_back(absl::StrFormat(
        "Least %s: %s has %s a run, %.1f %% less than the winner, in %.3f times its time; attune best %s --objective "
        "%s%s answers it",
        AmountName(one.objective()), VariantText(one.trial().variant()), AmountText(one.objective(), amount->middle),
        100 * (1 - amount->middle / winners->middle), timing.median_us() / result.winner().timing().median_us(),
        result.winner().problem_text(), attune::Word(one.objective()), WhereItIsServed(result.winner())));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace

std::string EnergyText(const v1::Energy& energy) {
  return absl::StrFormat("%s a run (%s to %s in %s), %.0f W over %.2f s%s", Joules(energy.joules()),
                         Joules(energy.low_joules()), Joules(energy.high_joules()), Counted(energy.spans(), "span"),
                         energy.power_w(), energy.seconds(),
                         energy.contended() ? ", another process was on the device" : "");
}

std::optional<Table> EnergyTable(const v1::TuneResult& result) {
  const std::vector<const v1::Trial*> measured = Measured(result);
  if (measured.empty()) return std::nullopt;
  Table table({{"energy a run", kNumber},
               {"lowest", kNumber},
               {"highest", kNumber},
               {"W", kNumber},
               {"time us", kNumber},
               {"variant", kVariant}});
  for (const v1::Trial* trial : measured) {
    const v1::Energy& energy = trial->timing().energy();
    table.Row({Joules(energy.joules()), Joules(energy.low_joules()), Joules(energy.high_joules()),
               absl::StrFormat("%.0f", energy.power_w()), Micros(trial->timing().median_us()),
               VariantText(trial->variant())});
  }
  return table;
}

std::string LeastEnergy(const v1::TuneResult& result) {
  const std::vector<const v1::Trial*> measured = Measured(result);
  if (measured.empty() || !result.winner().timing().has_energy()) return "";
  if (std::string chosen = Alternatives(result); !chosen.empty()) return chosen;
  const v1::Energy& least = measured.front()->timing().energy();
  const v1::Energy& winners = result.winner().timing().energy();
  // Spans that overlap do not tell them apart.
  if (least.contended() || winners.contended() || least.high_joules() >= winners.low_joules()) return "";
  const std::string variant = VariantText(measured.front()->variant());
  return absl::StrFormat(
      "Least energy: %s takes %s a run, %.1f %% less than the winner; attune serve %s %s%s serves it", variant,
      Joules(least.joules()), 100 * (1 - least.joules() / winners.joules()), result.winner().problem_text(), variant,
      WhereItIsServed(result.winner()));
}

}  // namespace attune::cli
