#include "proto/attune/objective.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attune {

absl::string_view Word(v1::Objective objective) {
  switch (objective) {
    case v1::OBJECTIVE_ENERGY:
      return "energy";
    case v1::OBJECTIVE_EDP:
      return "edp";
    default:
      return "time";
  }
}

absl::string_view AmountName(v1::Objective objective) {
  return objective == v1::OBJECTIVE_EDP ? "energy-delay product" : "energy";
}

std::optional<Amount> AmountOf(v1::Objective objective, const v1::Timing& timing) {
  const v1::Energy& energy = timing.energy();
  if (!timing.has_energy() || energy.contended() || timing.contended()) return std::nullopt;
  Amount amount = {energy.low_joules(), energy.joules(), energy.high_joules()};
  if (objective == v1::OBJECTIVE_EDP) {
    amount.low *= 1e-6 * timing.low_us();
    amount.middle *= 1e-6 * timing.median_us();
    amount.high *= 1e-6 * timing.high_us();
  }
  return amount;
}

std::string Joules(double joules) {
  if (joules < 1e-6) return absl::StrFormat("%.4g nJ", joules * 1e9);
  if (joules < 1e-3) return absl::StrFormat("%.4g uJ", joules * 1e6);
  if (joules < 1) return absl::StrFormat("%.4g mJ", joules * 1e3);
  return absl::StrFormat("%.4g J", joules);
}

std::string AmountText(v1::Objective objective, double amount) {
  return absl::StrCat(Joules(amount), objective == v1::OBJECTIVE_EDP ? " s" : "");
}

}  // namespace attune
