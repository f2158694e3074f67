// What a variant is best by: the amounts that objectives other than TIME compare, and their words.
#ifndef ATTUNE_PROTO_ATTUNE_OBJECTIVE_H_
#define ATTUNE_PROTO_ATTUNE_OBJECTIVE_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"

namespace attune {

// "time", also where it is unspecified; "energy"; "edp".
absl::string_view Word(v1::Objective objective);
// "energy", "energy-delay product".
absl::string_view AmountName(v1::Objective objective);

// Whether energy is compared: all objectives but TIME.
inline bool IsByEnergy(v1::Objective objective) {
  return objective == v1::OBJECTIVE_ENERGY || objective == v1::OBJECTIVE_EDP;
}

// As keys and requests have it: TIME is what is meant where none is named.
inline v1::Objective UnlessTime(v1::Objective objective) {
  return objective == v1::OBJECTIVE_TIME ? v1::OBJECTIVE_UNSPECIFIED : objective;
}

// Joules a run, or those times seconds a run; between the least and the most that the spans, and for EDP the interval
// of the time, allow.
struct Amount {
  double low = 0;
  double middle = 0;
  double high = 0;
};
// Nullopt where the energy is not known, or another process was on the device while it or the time was measured.
std::optional<Amount> AmountOf(v1::Objective objective, const v1::Timing& timing);
// Whether `a` is below `b` for certain: where they overlap they are not told apart.
inline bool IsCertainlyLess(const Amount& a, const Amount& b) { return a.high < b.low; }

// "12.31 mJ".
std::string Joules(double joules);
// "12.31 mJ", "4.1 uJ s".
std::string AmountText(v1::Objective objective, double amount);

}  // namespace attune

#endif  // ATTUNE_PROTO_ATTUNE_OBJECTIVE_H_
