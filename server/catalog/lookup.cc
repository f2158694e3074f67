#include "server/catalog/lookup.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/problem.h"
#include "proto/attune/quote.h"
#include "server/base/log.h"
#include "server/catalog/compiler_report.h"
#include "server/catalog/nearest.h"
#include "server/measure/measure.h"
#include "server/promotion/promotion.h"
#include "server/search/candidates.h"

namespace attune::catalog {
namespace {

constexpr int kPageSize = 1000;
constexpr int kMostTies = 64;  // candidates for a tie that are read
// Baselines in an answer, the newest; together no larger than this, whatever earlier versions let into the store.
constexpr int kMostBaselines = 100;
constexpr size_t kMostBaselineBytes = 1 << 18;
constexpr size_t kMostDerived = 4096;  // answers of some 5 KB kept for problems without an incumbent

// An answer, ready but for its artifact's bytes.
struct Answer {
  v1::GetBestResponse response;
  Problem problem;
  v1::Policy policy = v1::POLICY_HOT;
  std::optional<space::Variant> variant;  // as today's families have it
  std::string compile_key;                // of `variant` for `problem`
  // The compiler that made the answer's code from the sources as they are today; empty when there is no such code.
  std::string toolchain;
  v1::Resources resources;
};
using AnswerPtr = std::shared_ptr<const Answer>;

std::string KeyOf(absl::string_view problem_text, absl::string_view device_id, v1::Policy policy) {
  return absl::StrCat(problem_text, "\n", device_id, "\n", static_cast<int>(policy));
}

bool Acceptable(const v1::GetBestRequest& request, v1::Provenance provenance) {
  return request.acceptable().empty() ||
         std::find(request.acceptable().begin(), request.acceptable().end(), provenance) != request.acceptable().end();
}

class MemoryLookup : public Lookup {
 public:
  MemoryLookup(store::Store* store, World world) : store_(store), world_(std::move(world)) {}

  absl::Status Load() {
    store::IncumbentFilter filter;
    std::string token;
    do {
      absl::StatusOr<store::Page<v1::Incumbent>> page = store_->ListIncumbents(filter, kPageSize, token);
      if (!page.ok()) return page.status();
      for (const v1::Incumbent& incumbent : page->items) {
        absl::StatusOr<AnswerPtr> answer = MakeAnswer(incumbent);
        if (absl::IsInvalidArgument(answer.status())) {  // a problem that earlier versions took
          LogWarning("incumbent not served", {{"incumbent", incumbent.name()}, {"why", answer.status().message()}});
          continue;
        }
        if (!answer.ok()) return answer.status();
        Put(KeyOf(incumbent.problem_text(), incumbent.device_id(), incumbent.policy()), *std::move(answer));
      }
      token = page->next_page_token;
    } while (!token.empty());
    return absl::OkStatus();
  }

  absl::StatusOr<v1::GetBestResponse> GetBest(const v1::GetBestRequest& request) override {
    absl::StatusOr<Problem> problem = FromProto(request.problem());
    if (!problem.ok()) return problem.status();
    const std::string device_id =
        !request.device_id().empty() || world_.devices.empty() ? request.device_id() : world_.devices[0].id();
    const v1::Policy policy = request.policy() == v1::POLICY_UNSPECIFIED ? v1::POLICY_HOT : request.policy();
    const std::string text = ToText(*problem);
    const std::string key = KeyOf(text, device_id, policy);
    std::vector<std::string> tried;
    if (AnswerPtr answer = Find(key); answer == nullptr) {
      tried.push_back("it was never tuned there");
    } else if (Acceptable(request, answer->response.provenance())) {
      return Finish(request, *answer);
    } else {
      tried.push_back(absl::StrCat("its answer is ", Provenance_Name(answer->response.provenance()).substr(11),
                                   ", which is not acceptable"));
    }
    const v1::Device* device = DeviceOf(device_id);
    if (device == nullptr) {
      tried.push_back("this host has no such device to answer for");
    } else {
      if (Acceptable(request, v1::PROVENANCE_NEAREST)) {
        const AnswerPtr answer = Derived(key + "\nnearest", [&] { return MakeNearest(*problem, *device, policy); });
        if (answer != nullptr) return Finish(request, *answer);
        tried.push_back("no variant tuned for a near problem is feasible");
      }
      if (Acceptable(request, v1::PROVENANCE_HEURISTIC)) {
        const AnswerPtr answer = Derived(key + "\nheuristic", [&] { return MakeHeuristic(*problem, *device, policy); });
        if (answer != nullptr) return Finish(request, *answer);
        tried.push_back("no kernel family has a variant for it");
      }
    }
    return absl::NotFoundError(
        absl::StrCat("no answer for ", text, " on ", Quoted(device_id), ": ", absl::StrJoin(tried, "; ")));
  }

  uint64_t version() const override { return generation_; }

  void Changed(const v1::Incumbent& incumbent) override {
    Refresh(incumbent.problem_text(), incumbent.device_id(), incumbent.policy());
  }

  void Recorded(const v1::Baseline& baseline) override {
    Refresh(baseline.problem_text(), baseline.device_id(), baseline.policy());
  }

 private:
  AnswerPtr Find(const std::string& key) const {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto it = answers_.find(key);
    return it == answers_.end() ? nullptr : it->second;
  }

  // What the store serves counts, so that two changes at once cannot end in the older.
  void Refresh(const std::string& problem_text, const std::string& device_id, v1::Policy policy) {
    const std::lock_guard<std::mutex> one(changing_);
    absl::StatusOr<v1::Incumbent> served = store_->GetIncumbent(problem_text, device_id, policy);
    AnswerPtr answer;
    if (served.ok()) {
      absl::StatusOr<AnswerPtr> made = MakeAnswer(*served);
      if (!made.ok()) return;  // the former answer stays
      answer = *std::move(made);
    } else if (!absl::IsNotFound(served.status())) {
      return;
    }
    Put(KeyOf(problem_text, device_id, policy), std::move(answer));
  }

  void Put(const std::string& key, AnswerPtr answer) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    if (answer == nullptr) {
      answers_.erase(key);
    } else {
      answers_[key] = std::move(answer);
    }
    derived_.clear();
    ++generation_;
  }

  // Made once and kept until an incumbent changes; null answers too.
  template <typename Make>
  AnswerPtr Derived(const std::string& key, Make make) {
    uint64_t generation = 0;
    {
      const std::shared_lock<std::shared_mutex> lock(mutex_);
      if (const auto it = derived_.find(key); it != derived_.end()) return it->second;
      generation = generation_;
    }
    AnswerPtr answer = make();
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    if (generation != generation_) return answer;
    if (derived_.size() >= kMostDerived) derived_.clear();
    return derived_[key] = std::move(answer);
  }

  absl::StatusOr<v1::GetBestResponse> Finish(const v1::GetBestRequest& request, const Answer& answer) {
    v1::GetBestResponse response = answer.response;
    if (!request.include_artifact()) return response;
    if (response.artifact_sha256().empty()) response.set_artifact_sha256(CompiledNow(answer));
    if (response.artifact_sha256().empty()) return response;
    absl::StatusOr<std::string> artifact = store_->ReadArtifact(response.artifact_sha256());
    if (Lost(artifact.status())) {
      // Compiled again since: the bytes of another compile may differ, the code is the same.
      if (const std::string again = CompiledNow(answer); !again.empty() && again != response.artifact_sha256()) {
        response.set_artifact_sha256(again);
        artifact = store_->ReadArtifact(again);
      }
    }
    if (Lost(artifact.status())) {
      return absl::DataLossError(absl::StrCat(artifact.status().message(), "; tune ", ToText(answer.problem),
                                              " again: that compiles it again"));
    }
    if (!artifact.ok()) return artifact.status();
    response.set_artifact(*std::move(artifact));
    return response;
  }

  static bool Lost(const absl::Status& status) { return absl::IsNotFound(status) || absl::IsDataLoss(status); }

  // The hash of what the answer's sources were compiled to last; empty when they have not been, or are others by now.
  std::string CompiledNow(const Answer& answer) const {
    if (answer.compile_key.empty() || answer.toolchain.empty()) return "";
    absl::StatusOr<store::CompiledArtifact> found = store_->FindArtifact(answer.compile_key, answer.toolchain);
    return found.ok() ? found->sha256 : "";
  }

  absl::StatusOr<AnswerPtr> MakeAnswer(const v1::Incumbent& incumbent) {
    v1::Trial trial = incumbent.trial();
    if (trial.recipe().launches().empty()) {
      absl::StatusOr<v1::Trial> whole = store_->GetTrial(trial.name());
      if (!whole.ok()) return whole.status();
      trial = *std::move(whole);
    }
    absl::StatusOr<Problem> problem = FromProto(incumbent.problem());
    if (!problem.ok()) return problem.status();
    auto answer = std::make_shared<Answer>();
    answer->problem = *problem;
    answer->policy = incumbent.policy();
    answer->resources = trial.resources();
    v1::GetBestResponse& response = answer->response;
    *response.mutable_problem() = incumbent.problem();
    response.set_device_id(incumbent.device_id());
    *response.mutable_variant() = trial.variant();
    *response.mutable_recipe() = trial.recipe();
    *response.mutable_timing() = promotion::ServedTiming(incumbent);
    *response.mutable_measure_time() = incumbent.has_timing() ? incumbent.promote_time() : trial.finish_time();
    response.set_pinned(incumbent.pinned());
    *response.mutable_geometry() = trial.geometry();
    *response.mutable_accuracy() = trial.accuracy();
    response.set_artifact_sha256(trial.artifact_sha256());
    response.set_trial(trial.name());
    *response.mutable_promote_time() = incumbent.promote_time();
    if (absl::Status status = AddTies(trial, response); !status.ok()) return status;
    absl::StatusOr<store::Page<v1::Baseline>> baselines =
        store_->ListBaselines(incumbent.problem_text(), incumbent.device_id(), kPageSize, "");
    if (!baselines.ok()) return baselines.status();
    size_t room = kMostBaselineBytes;
    for (v1::Baseline& baseline : baselines->items) {
      if (response.baselines_size() == kMostBaselines) break;
      if (baseline.policy() != incumbent.policy() || baseline.ByteSizeLong() > room) continue;
      room -= baseline.ByteSizeLong();
      *response.add_baselines() = std::move(baseline);
    }
    const std::string changed = WhatChanged(trial);
    if (!changed.empty()) {
      response.set_provenance(v1::PROVENANCE_STALE);
      response.set_provenance_detail(changed);
    } else if (response.ties_size() > 0) {
      response.set_provenance(v1::PROVENANCE_TIE);
      response.set_provenance_detail(absl::StrCat("with ", response.ties_size(),
                                                  response.ties_size() == 1 ? " other variant" : " other variants"));
    } else {
      response.set_provenance(v1::PROVENANCE_EXACT);
    }
    if (const v1::Device* device = DeviceOf(incumbent.device_id()); device != nullptr) {
      absl::StatusOr<space::Variant> variant = space::ParseVariant(trial.variant().text(), world_.families);
      if (variant.ok()) {
        absl::StatusOr<space::CompileSpec> spec = space::SpecFor(*variant, *problem, *device);
        if (spec.ok()) answer->compile_key = spec->key;
        if (variant->family->source_hash == trial.dependencies().source_hash()) {
          answer->toolchain = trial.dependencies().toolchain();
        }
        answer->variant = *std::move(variant);
      }
    }
    return answer;
  }

  // Good trials under the same dependencies whose intervals overlap the incumbent's.
  absl::Status AddTies(const v1::Trial& trial, v1::GetBestResponse& response) {
    v1::TrialFilter filter;
    filter.set_problem(trial.problem_text());
    filter.set_device_id(trial.device_id());
    filter.set_policy(trial.policy());
    filter.add_verdicts(v1::VERDICT_OK);
    absl::StatusOr<store::Page<v1::Trial>> fastest =
        store_->ListTrials(filter, v1::ListTrialsRequest::ORDER_FASTEST, kMostTies, "");
    if (!fastest.ok()) return fastest.status();
    std::vector<std::string> texts = {trial.variant().text()};
    for (const v1::Trial& other : fastest->items) {
      if (other.timing().contended() || !SameWorld(other.dependencies(), trial.dependencies()) ||
          measure::Compare(other.timing(), trial.timing()) != measure::Comparison::kTie ||
          std::find(texts.begin(), texts.end(), other.variant().text()) != texts.end()) {
        continue;
      }
      texts.push_back(other.variant().text());
      *response.add_ties() = other.variant();
    }
    return absl::OkStatus();
  }

  // Variants of other families have other sources.
  static bool SameWorld(const v1::Dependencies& a, const v1::Dependencies& b) {
    return a.toolchain() == b.toolchain() && a.driver() == b.driver() &&
           a.device_fingerprint() == b.device_fingerprint();
  }

  // Why the answer is STALE; empty when it is not.
  std::string WhatChanged(const v1::Trial& trial) const {
    const v1::Device* device = DeviceOf(trial.device_id());
    if (device == nullptr) {
      return absl::StrCat("this host has no ", trial.device_id(), " to compare with");
    }
    const v1::Dependencies& then = trial.dependencies();
    std::vector<std::string> changes;
    const auto family = std::find_if(world_.families.begin(), world_.families.end(), [&](const auto& candidate) {
      return candidate->name() == trial.variant().family();
    });
    if (family == world_.families.end()) {
      changes.push_back(absl::StrCat("kernel family ", trial.variant().family(), " is no longer here"));
    } else if ((*family)->source_hash != then.source_hash()) {
      changes.push_back(absl::StrCat("source of ", trial.variant().family(), " changed"));
    }
    const auto toolchain = world_.toolchains.find(device->backend());
    if (toolchain != world_.toolchains.end() && toolchain->second != then.toolchain()) {
      changes.push_back(absl::StrCat("toolchain was ", then.toolchain(), ", is ", toolchain->second));
    }
    if (device->driver() != then.driver()) {
      changes.push_back(absl::StrCat("driver was ", then.driver(), ", is ", device->driver()));
    }
    if (device->fingerprint() != then.device_fingerprint()) {
      changes.push_back(absl::StrCat(trial.device_id(), " is another device or has other limits"));
    }
    return absl::StrJoin(changes, "; ");
  }

  AnswerPtr MakeNearest(const Problem& problem, const v1::Device& device, v1::Policy policy) {
    std::vector<std::pair<double, AnswerPtr>> near;
    {
      const std::shared_lock<std::shared_mutex> lock(mutex_);
      for (const auto& [key, answer] : answers_) {
        if (answer->response.device_id() != device.id() || answer->policy != policy || !answer->variant.has_value() ||
            answer->problem == problem) {
          continue;
        }
        const std::optional<double> distance = Distance(problem, answer->problem);
        if (distance.has_value()) near.emplace_back(*distance, answer);
      }
    }
    // Equally near ones in the order of their texts, so that the answer is the same every time.
    std::sort(near.begin(), near.end(), [](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      return ToText(a.second->problem) < ToText(b.second->problem);
    });
    for (const auto& [distance, source] : near) {
      if (!space::Feasible(*source->variant, problem, device).ok()) continue;
      AnswerPtr answer = Derive(*source->variant, problem, device, policy, source.get());
      if (answer != nullptr) return answer;
    }
    return nullptr;
  }

  AnswerPtr MakeHeuristic(const Problem& problem, const v1::Device& device, v1::Policy policy) {
    absl::StatusOr<space::Variant> variant = HeuristicVariant(world_.families, problem, device);
    if (!variant.ok()) return nullptr;
    return Derive(*variant, problem, device, policy, nullptr);
  }

  // `variant` for a problem it was not tuned for; `source`: the answer it comes from, or null when it was never timed.
  AnswerPtr Derive(const space::Variant& variant, const Problem& problem, const v1::Device& device, v1::Policy policy,
                   const Answer* source) {
    absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(variant, problem, device);
    absl::StatusOr<space::CompileSpec> spec = space::SpecFor(variant, problem, device);
    if (!recipe.ok() || !spec.ok()) return nullptr;
    auto answer = std::make_shared<Answer>();
    answer->problem = problem;
    answer->policy = policy;
    answer->variant = variant;
    answer->compile_key = spec->key;
    if (const auto toolchain = world_.toolchains.find(device.backend()); toolchain != world_.toolchains.end()) {
      answer->toolchain = toolchain->second;
    }
    v1::GetBestResponse& response = answer->response;
    *response.mutable_problem() = ToProto(problem);
    response.set_device_id(device.id());
    *response.mutable_variant() = variant.ToProto();
    if (source == nullptr) {
      response.set_provenance(v1::PROVENANCE_HEURISTIC);
      response.set_provenance_detail("heuristic default from the device's limits, not benchmarked");
      *response.mutable_geometry() =
          space::GeometryOf(*recipe, ResourcesOf(store::CompiledArtifact(), *recipe), device);
    } else {
      response.set_provenance(v1::PROVENANCE_NEAREST);
      response.set_provenance_detail(absl::StrCat("from ", ToText(source->problem)));
      *response.mutable_geometry() = space::GeometryOf(*recipe, source->resources, device);
      *response.mutable_timing() = source->response.timing();
      *response.mutable_measure_time() = source->response.measure_time();
      *response.mutable_accuracy() = source->response.accuracy();
      response.set_trial(source->response.trial());
      if (source->compile_key == spec->key) response.set_artifact_sha256(source->response.artifact_sha256());
    }
    *response.mutable_recipe() = *std::move(recipe);
    return answer;
  }

  const v1::Device* DeviceOf(absl::string_view id) const {
    for (const v1::Device& device : world_.devices) {
      if (device.id() == id) return &device;
    }
    return nullptr;
  }

  store::Store* const store_;
  const World world_;
  std::mutex changing_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, AnswerPtr> answers_;
  std::unordered_map<std::string, AnswerPtr> derived_;
  std::atomic<uint64_t> generation_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Lookup>> Lookup::Create(store::Store* store, World world) {
  auto lookup = std::make_unique<MemoryLookup>(store, std::move(world));
  if (absl::Status status = lookup->Load(); !status.ok()) return status;
  return lookup;
}

}  // namespace attune::catalog
