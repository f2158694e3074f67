#include "client/replay/record.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/replay/recorded_space.h"
#include "server/search/feature_columns.h"

namespace attune::replay {
namespace {

using google::protobuf::util::TimeUtil;

bool SameDay(const attune::v1::Trial& a, const attune::v1::Trial& b) {
  return a.dependencies().toolchain() == b.dependencies().toolchain() &&
         a.dependencies().driver() == b.dependencies().driver() &&
         a.dependencies().device_fingerprint() == b.dependencies().device_fingerprint();
}

// Of a variant's trials, newest first: the newest unless it is good, else the good one of the median time, the faster
// of two in the middle.
const attune::v1::Trial* Typical(std::vector<const attune::v1::Trial*> trials) {
  const auto good = [](const attune::v1::Trial* trial) {
    return IsTimed(trial->verdict()) && trial->timing().median_us() > 0;
  };
  if (!good(trials.front())) return trials.front();
  std::erase_if(trials, [&](const attune::v1::Trial* trial) { return !good(trial); });
  std::stable_sort(trials.begin(), trials.end(), [](const attune::v1::Trial* a, const attune::v1::Trial* b) {
    return a->timing().median_us() < b->timing().median_us();
  });
  return trials[(trials.size() - 1) / 2];
}

void FillRow(const attune::v1::Trial& trial, v1::Row& row) {
  row.set_verdict(trial.verdict());
  if (IsTimed(trial.verdict())) {
    row.set_median_us(trial.timing().median_us());
    row.set_low_us(trial.timing().low_us());
    row.set_high_us(trial.timing().high_us());
    row.set_min_us(trial.timing().min_us());
    row.set_samples(trial.timing().samples());
  }
  row.set_compile_ms(trial.compile_ms());
  row.set_registers(trial.resources().registers());
  row.set_spill_bytes(trial.resources().spill_bytes());
  row.set_shared_bytes(trial.resources().shared_bytes());
}

// Of each job, what lies between the ends of two trials in a row.
std::map<std::string, double> TrialTimes(const std::vector<attune::v1::Trial>& newest_first) {
  std::map<std::string, double> times;
  for (size_t i = 0; i + 1 < newest_first.size(); ++i) {
    const attune::v1::Trial& trial = newest_first[i];
    if (trial.job() != newest_first[i + 1].job()) continue;
    const int64_t nanoseconds = TimeUtil::TimestampToNanoseconds(trial.finish_time()) -
                                TimeUtil::TimestampToNanoseconds(newest_first[i + 1].finish_time());
    times[trial.name()] = std::max(static_cast<double>(nanoseconds) / 1e6, 0.0);
  }
  return times;
}

}  // namespace

absl::StatusOr<v1::Recording> MakeRecording(const Problem& problem, const attune::v1::Device& device,
                                            const std::vector<attune::v1::Trial>& trials,
                                            const std::vector<std::shared_ptr<const space::Family>>& families) {
  v1::Recording recording;
  recording.set_problem(ToText(problem));
  recording.set_device_model(device.model());
  recording.set_device_class(device.fingerprint());
  std::map<std::string, int> numbers;
  std::map<std::string, int> codes;
  std::set<std::string> guesses;
  std::vector<std::shared_ptr<const space::Family>> used;
  const attune::v1::Trial* newest = nullptr;
  std::map<std::string, std::vector<const attune::v1::Trial*>> repeated;
  std::vector<space::Variant> variants;
  for (const attune::v1::Trial& trial : trials) {
    const absl::StatusOr<space::Variant> variant = space::ParseVariant(trial.variant().text(), families);
    if (!variant.ok() || variant->family->source_hash != trial.dependencies().source_hash()) continue;
    if (trial.verdict() == attune::v1::VERDICT_LOST || (newest != nullptr && !SameDay(*newest, trial))) continue;
    if (newest == nullptr) newest = &trial;
    std::vector<const attune::v1::Trial*>& of_variant = repeated[trial.variant().text()];
    of_variant.push_back(&trial);
    if (of_variant.size() > 1) continue;
    variants.push_back(*variant);
    const std::string& name = variant->family->name();
    if (!numbers.try_emplace(name, recording.families_size()).second) continue;
    used.push_back(variant->family);
    v1::Family& family = *recording.add_families();
    family.set_name(name);
    family.set_source_hash(variant->family->source_hash);
    for (const auto& parameter : variant->family->manifest.parameters()) family.add_parameters(parameter.name());
    const absl::StatusOr<space::Variant> guess = space::Guess(variant->family, problem, device);
    if (guess.ok()) guesses.insert(guess->ToText());
  }
  if (newest == nullptr) {
    return absl::NotFoundError(absl::StrCat("no trial of ", ToText(problem), " on ", device.id(),
                                            " is of today's sources; tune it exhaustively first"));
  }
  recording.set_policy(newest->policy());
  recording.set_toolchain(newest->dependencies().toolchain());
  recording.set_driver(newest->dependencies().driver());
  *recording.mutable_record_time() = newest->finish_time();
  const search::FeatureColumns columns(used);
  for (const std::string& name : columns.names()) recording.add_features(name);
  const std::map<std::string, double> times = TrialTimes(trials);
  for (const space::Variant& variant : variants) {
    const std::string text = variant.ToText();
    const attune::v1::Trial* const trial = Typical(repeated.at(text));
    v1::Row& row = *recording.add_rows();
    row.set_family(numbers.at(variant.family->name()));
    for (int64_t value : variant.values) row.add_values(value);
    const absl::StatusOr<std::vector<double>> features = columns.Of(variant, problem, device);
    if (!features.ok()) return features.status();
    for (double feature : *features) row.add_features(feature);
    const absl::StatusOr<space::CompileSpec> spec = space::SpecFor(variant, problem, device);
    if (spec.ok()) row.set_code(codes.try_emplace(spec->key, static_cast<int>(codes.size())).first->second);
    row.set_guess(guesses.contains(text));
    FillRow(*trial, row);
    if (const auto time = times.find(trial->name()); time != times.end()) row.set_trial_ms(time->second);
  }
  return recording;
}

}  // namespace attune::replay
