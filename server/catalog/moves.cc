#include "server/catalog/moves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/attune/problem.h"
#include "server/space/space.h"

namespace attune::catalog {
namespace {

// The one parameter in which two variants of a family differ.
std::optional<v1::ParameterValue> OnlyDifference(const v1::Variant& from, const v1::Variant& to) {
  if (from.family() != to.family() || from.parameters_size() != to.parameters_size()) return std::nullopt;
  std::optional<v1::ParameterValue> difference;
  for (int i = 0; i < to.parameters_size(); ++i) {
    if (from.parameters(i).name() != to.parameters(i).name()) return std::nullopt;
    if (from.parameters(i).value() == to.parameters(i).value()) continue;
    if (difference.has_value()) return std::nullopt;
    difference = to.parameters(i);
  }
  return difference;
}

bool IsTowards(Direction direction, int64_t from, int64_t to) {
  return direction == Direction::kRaise ? to > from : to < from;
}

std::string Change(const Idea& idea, int64_t from, int64_t to) {
  return absl::StrCat(idea.direction == Direction::kRaise ? "raise " : "lower ", idea.parameter, " from ", from, " to ",
                      to);
}

std::string Listed(const std::vector<int64_t>& values) {
  if (values.size() == 1) return absl::StrCat(values.front());
  return absl::StrCat(absl::StrJoin(values.begin(), values.end() - 1, ", "), " and ", values.back());
}

}  // namespace

Moves::Moves(const v1::Trial& trial, std::shared_ptr<const space::Family> family, const v1::Device& device,
             const std::vector<v1::Trial>& others)
    : trial_(trial), family_(std::move(family)), device_(device) {
  for (const v1::Trial& other : others) {
    const std::optional<v1::ParameterValue> difference = OnlyDifference(trial.variant(), other.variant());
    if (!difference.has_value()) continue;
    const auto same = std::find_if(neighbours_.begin(), neighbours_.end(), [&](const auto& known) {
      return known.first == difference->name() && known.second.value == difference->value();
    });
    if (same == neighbours_.end()) {
      neighbours_.push_back({difference->name(), {difference->value(), &other}});
    } else if (IsFaster(other)) {
      same->second.trial = &other;
    }
  }
}

std::optional<int64_t> Moves::ValueOf(absl::string_view parameter) const {
  for (const v1::ParameterValue& value : trial_.variant().parameters()) {
    if (value.name() == parameter) return value.value();
  }
  return std::nullopt;
}

// Their intervals do not overlap.
bool Moves::IsFaster(const v1::Trial& other) const {
  const v1::Timing& timing = other.timing();
  if (other.verdict() != v1::VERDICT_OK || timing.median_us() <= 0) return false;
  const double high = timing.high_us() > 0 ? timing.high_us() : timing.median_us();
  const double low = trial_.timing().low_us() > 0 ? trial_.timing().low_us() : trial_.timing().median_us();
  return high < low;
}

std::vector<Moves::Neighbour> Moves::Tried(const Idea& idea) const {
  std::vector<Neighbour> tried;
  const std::optional<int64_t> from = ValueOf(idea.parameter);
  for (const auto& [parameter, neighbour] : neighbours_) {
    if (parameter == idea.parameter && IsTowards(idea.direction, *from, neighbour.value)) tried.push_back(neighbour);
  }
  std::sort(tried.begin(), tried.end(), [](const Neighbour& a, const Neighbour& b) { return a.value < b.value; });
  return tried;
}

bool Moves::IsFeasibleWith(absl::string_view parameter, int64_t value) const {
  const absl::StatusOr<Problem> problem = FromProto(trial_.problem());
  if (!problem.ok()) return false;
  space::Variant variant = {.family = family_, .values = {}};
  for (const v1::ParameterValue& own : trial_.variant().parameters()) {
    variant.values.push_back(own.name() == parameter ? value : own.value());
  }
  return space::Feasible(variant, *problem, device_, space::Advice::kHeeded).ok();
}

std::optional<int64_t> Moves::Untried(const Idea& idea) const {
  const std::optional<int64_t> from = ValueOf(idea.parameter);
  if (family_ == nullptr || !from.has_value()) return std::nullopt;
  const auto& parameters = family_->manifest.parameters();
  if (parameters.size() != trial_.variant().parameters_size()) return std::nullopt;
  std::optional<int64_t> nearest;
  const auto distance = [&](int64_t value) {
    const auto wanted = static_cast<double>(std::max<int64_t>(idea.towards.value_or(*from), 1));
    return std::abs(std::log(static_cast<double>(std::max<int64_t>(value, 1)) / wanted));
  };
  for (const auto& parameter : parameters) {
    if (parameter.name() != idea.parameter) continue;
    for (int64_t value : parameter.values()) {
      if (!IsTowards(idea.direction, *from, value) || !IsFeasibleWith(idea.parameter, value)) continue;
      if (!nearest.has_value() || distance(value) < distance(*nearest)) nearest = value;
    }
  }
  return nearest;
}

std::string Moves::Proven(const std::vector<Idea>& ideas) const {
  std::string advice;
  const v1::Trial* best = nullptr;
  for (const Idea& idea : ideas) {
    for (const Neighbour& neighbour : Tried(idea)) {
      if (!IsFaster(*neighbour.trial)) continue;
      if (best != nullptr && best->timing().median_us() <= neighbour.trial->timing().median_us()) continue;
      best = neighbour.trial;
      advice = absl::StrCat(Change(idea, *ValueOf(idea.parameter), neighbour.value),
                            absl::StrFormat(", which took %.4g us (%s)", best->timing().median_us(), best->name()));
    }
  }
  return advice;
}

std::string Moves::Advice(const std::vector<Idea>& ideas) const {
  std::string proven = Proven(ideas);
  if (!proven.empty()) return proven;
  for (const Idea& idea : ideas) {
    if (!Tried(idea).empty()) continue;
    const std::optional<int64_t> value = Untried(idea);
    if (value.has_value()) {
      return absl::StrCat(Change(idea, *ValueOf(idea.parameter), *value), ", which has not been tried");
    }
  }
  return "";
}

std::string Moves::TriedInVain(const std::vector<Idea>& ideas) const {
  std::vector<std::string> parts;
  for (const Idea& idea : ideas) {
    std::vector<int64_t> values;
    for (const Neighbour& neighbour : Tried(idea)) {
      if (IsFaster(*neighbour.trial)) return "";
      values.push_back(neighbour.value);
    }
    if (values.empty()) continue;
    parts.push_back(absl::StrCat(idea.parameter, " ", Listed(values), " instead of ", *ValueOf(idea.parameter)));
  }
  if (parts.empty()) return "";
  return absl::StrCat(absl::StrJoin(parts, ", "), ": tried, and no faster");
}

}  // namespace attune::catalog
