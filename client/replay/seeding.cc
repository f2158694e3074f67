#include "client/replay/seeding.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/replay/answer_rule.h"
#include "server/base/device_profile.h"
#include "server/catalog/answers/derived_answer.h"
#include "server/forecast/class_model.h"
#include "server/search/feature_columns.h"
#include "server/search/search_spec.h"

namespace attune::replay {
namespace {

absl::StatusOr<attune::v1::Device> DeviceOf(const v1::Recording& recording) {
  for (absl::string_view name : DeviceProfileNames()) {
    absl::StatusOr<attune::v1::Device> device = DeviceProfile(name);
    if (device.ok() && device->model() == recording.device_model()) return device;
  }
  return absl::InvalidArgumentError(absl::StrCat(recording.problem(), " was recorded on '", recording.device_model(),
                                                 "', which no device profile is of; its variants cannot be re-fitted"));
}

// What would be served for a recorded problem, or was shipped for it.
absl::StatusOr<catalog::AnswerPtr> FastestOf(const v1::Recording& recording, TunedWhere where,
                                             const Families& families) {
  const absl::StatusOr<Families> recorded = FamiliesOf(recording, families);
  if (!recorded.ok()) return recorded.status();
  const v1::Row* fastest = nullptr;
  for (const v1::Row& row : recording.rows()) {
    if (HasTime(row) && (fastest == nullptr || row.median_us() < fastest->median_us())) fastest = &row;
  }
  auto answer = std::make_shared<catalog::Answer>();
  answer->problem = *ParseProblem(recording.problem());
  answer->variant = {.family = (*recorded)[static_cast<size_t>(fastest->family())],
                     .values = {fastest->values().begin(), fastest->values().end()}};
  answer->response.mutable_timing()->set_median_us(fastest->median_us());
  if (where == TunedWhere::kHere) {
    answer->response.set_trial("trials/0");
  } else {
    answer->response.set_provenance_detail(recording.device_model());
  }
  return answer;
}

bool SaysSomethingOf(const v1::Recording& other, const v1::Recording& one, TunedWhere where) {
  if (other.problem() == one.problem() || other.policy() != one.policy()) return false;
  if (where == TunedWhere::kHere) return other.device_class() == one.device_class();
  const auto its_device = DeviceOf(other);
  const auto device = DeviceOf(one);
  return its_device.ok() && device.ok() && its_device->compute_capability() == device->compute_capability();
}

// Whether a daemon of the one's device learns from the other's trials, and not only from its fastest.
bool TeachesTrials(const v1::Recording& other, const v1::Recording& one, TunedWhere where) {
  return SaysSomethingOf(other, one, where) && other.device_model() == one.device_model();
}

// What is expected to be the fastest of a recording's problem, if anything is, and of each row.
using Forecast = std::pair<std::optional<space::Variant>, std::vector<double>>;

bool Has(const std::vector<std::string>& only, const v1::Recording& recording) {
  return only.empty() || std::find(only.begin(), only.end(), recording.problem()) != only.end();
}

// Of each recording, from the others.
absl::StatusOr<std::vector<Forecast>> ForecastsOf(const std::vector<v1::Recording>& recordings, TunedWhere where,
                                                  const Families& families, const std::vector<std::string>& only) {
  std::vector<Forecast> forecasts(recordings.size());
  const Families recorded = Recorded(recordings, families);
  const search::FeatureColumns columns(recorded);
  std::vector<TunedProblem> tuned;
  for (const v1::Recording& recording : recordings) {
    const absl::StatusOr<attune::v1::Device> device = DeviceOf(recording);
    if (!device.ok()) return device.status();
    absl::StatusOr<TunedProblem> one = TunedProblemOf(recording, recorded, columns, *device);
    if (!one.ok()) return one.status();
    tuned.push_back(*std::move(one));
  }
  for (size_t i = 0; i < recordings.size(); ++i) {
    if (!Has(only, recordings[i])) continue;
    std::vector<const TunedProblem*> others;
    for (size_t other = 0; other < recordings.size(); ++other) {
      if (TeachesTrials(recordings[other], recordings[i], where)) others.push_back(&tuned[other]);
    }
    const Choices& choices = tuned[i].choices;
    const forecast::ClassModel model = ClassModelOf(others, recorded, *DeviceOf(recordings[i]));
    if (model.problems() < forecast::ClassModel::kLeastProblems || !model.Covers(choices.problem)) continue;
    std::vector<space::Variant> ranked = model.Ranked(choices.problem);
    if (ranked.empty()) continue;
    forecasts[i] = {std::move(ranked.front()), model.Expect(choices.problem, choices.variants)};
  }
  return forecasts;
}

}  // namespace

absl::Status SeedFromOthers(const std::vector<v1::Recording>& recordings, TunedWhere where, const Families& families,
                            const std::vector<std::string>& only, std::vector<RecordedSpace>& spaces) {
  std::vector<catalog::AnswerPtr> answers;
  for (const v1::Recording& recording : recordings) {
    absl::StatusOr<catalog::AnswerPtr> answer = FastestOf(recording, where, families);
    if (!answer.ok()) return answer.status();
    answers.push_back(*std::move(answer));
  }
  absl::StatusOr<std::vector<Forecast>> forecasts = ForecastsOf(recordings, where, families, only);
  if (!forecasts.ok()) return forecasts.status();
  for (size_t i = 0; i < recordings.size(); ++i) {
    const v1::Recording& recording = recordings[i];
    if (!Has(only, recording)) continue;
    const absl::StatusOr<attune::v1::Device> device = DeviceOf(recording);
    if (!device.ok()) return device.status();
    std::map<std::string, size_t> by_text;
    for (int row = 0; row < recording.rows_size(); ++row) {
      by_text.emplace(VariantText(recording, recording.rows(row)), static_cast<size_t>(row));
    }
    std::vector<catalog::AnswerPtr> others;
    for (size_t other = 0; other < recordings.size(); ++other) {
      if (SaysSomethingOf(recordings[other], recording, where)) others.push_back(answers[other]);
    }
    Forecast& forecast = (*forecasts)[i];
    spaces[i].field.expected = std::move(forecast.second);
    std::vector<size_t> seeds;
    for (const space::Variant& variant :
         search::SeedsOf(catalog::VariantsNearby(std::move(others), answers[i]->problem, *device, search::kMostSeeds),
                         std::move(forecast.first))) {
      const auto found = by_text.find(variant.ToText());
      if (found != by_text.end()) seeds.push_back(found->second);
    }
    std::vector<size_t>& guesses = spaces[i].field.likely.guesses;
    guesses.insert(guesses.begin(), seeds.begin(), seeds.end());
  }
  return absl::OkStatus();
}

}  // namespace attune::replay
