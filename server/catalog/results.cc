#include "server/catalog/results.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/domain.h"
#include "proto/attune/objective.h"
#include "proto/attune/problem.h"
#include "proto/attune/quote.h"
#include "server/base/log.h"
#include "server/base/reason.h"
#include "server/catalog/answers/answer_artifact.h"
#include "server/catalog/answers/answer_domains.h"
#include "server/catalog/answers/answers.h"
#include "server/catalog/answers/derived_answer.h"
#include "server/catalog/answers/given_answer.h"
#include "server/catalog/answers/problem_distance.h"
#include "server/catalog/answers/stored_answer.h"
#include "server/catalog/copy/results_of_copy.h"
#include "server/catalog/copy/served_copy.h"
#include "server/catalog/prior/shipped_prior.h"
#include "server/catalog/result_log.h"
#include "server/store/page_token.h"

namespace attune::catalog {
namespace {

bool Acceptable(const v1::GetBestRequest& request, v1::Provenance provenance) {
  return request.acceptable().empty() ||
         std::find(request.acceptable().begin(), request.acceptable().end(), provenance) != request.acceptable().end();
}

constexpr size_t kReadAtOnce = 500;  // answers; nobody else changes any meanwhile

class StoredResults : public Results {
 public:
  StoredResults(store::Store& store, const Host& host, CodeSupply* supply, Forecasts* forecasts)
      : store_(store), host_(host), supply_(supply), forecasts_(forecasts) {}

  absl::Status Load() {
    PublishShipped();
    All all;
    std::string token;
    do {
      absl::StatusOr<store::Page<v1::Incumbent>> page = store_.ListIncumbents({}, store::kMostPageSize, token);
      if (!page.ok()) return page.status();
      if (absl::Status added = AddStored(page->items, all); !added.ok()) return added;
      token = page->next_page_token;
    } while (!token.empty());
    // Of a problem whose incumbent another daemon changes between two pages, none of them may have one.
    std::vector<ResultKey> missing;
    for (const std::string& text : answers_.Keys()) {
      if (!all.contains(text)) missing.push_back(KeyOfText(text));
    }
    absl::StatusOr<All> found = Read(missing);
    if (!found.ok()) return found.status();
    all.merge(*found);
    answers_.Assign(std::move(all));
    if (copied_.exchange(false)) answers_.Touch();  // what was answered in between has the caveat
    return absl::OkStatus();
  }

  void LoadCopy(const served::v1::Copy& copy) {
    PublishShipped();
    All all;
    Add(copy.incumbents(), copy.baselines(), all);
    copy_time_ = TimeText(copy);
    copied_ = true;
    answers_.Assign(std::move(all));
  }

  absl::Status Reload() override {
    const std::lock_guard<std::mutex> one(changing_);
    return Load();  // drops what was derived, too: a class that nobody tuned for may have better answers by now
  }

  using Results::GetBest;
  absl::StatusOr<v1::GetBestResponse> GetBest(const v1::GetBestRequest& request, std::string* awaited) override {
    const absl::StatusOr<Problem> problem = FromProto(request.problem());
    if (!problem.ok()) return problem.status();
    const std::vector<const v1::Device*> cards = DevicesNamed(host_, request.device_id());
    const ResultKey key{ToText(*problem), ClassNamed(request.device_id(), host_), request.policy()};
    const std::string doubt = Doubt(key);
    const std::string copied = Copied();  // before the answer is chosen: the store's with the caveat does no harm
    std::vector<std::string> tried;
    const AnswerPtr answer = Choose(request, *problem, key, cards, tried);
    const bool by_energy = IsByEnergy(request.objective());
    const bool alternative = answer != nullptr && answer->response.objective() != v1::OBJECTIVE_UNSPECIFIED;
    const std::string why =
        by_energy && answer != nullptr && !alternative ? WhyTheFastest(*answer, request.objective()) : "";
    for (const std::string& caveat : {doubt, copied}) {
      if (!caveat.empty()) tried.push_back(caveat);
    }
    // At other lengths nobody has measured energy: an alternative holds for its own alone.
    const bool ranges = request.include_domains() && doubt.empty() && !cards.empty() && !alternative;
    const AnswerPtr domains = ranges ? WithDomains(request, *problem, key, *cards.front(), answer) : nullptr;
    if (answer == nullptr) {
      absl::Status none = absl::NotFoundError(absl::StrCat(
          "no answer for ", key.problem_text, " on ", Quoted(request.device_id()), ": ", absl::StrJoin(tried, "; ")));
      if (domains != nullptr) none.SetPayload(kHoldsForUrl, absl::Cord(RangesText(domains->response.domains())));
      return none;
    }
    v1::GetBestResponse response = GiveTo(cards, *answer, host_);
    if (domains != nullptr) *response.mutable_domains() = domains->response.domains();
    for (const std::string& caveat : {why, doubt, copied}) AddDetail(caveat, response);
    if (absl::Status status = AddCode(answer, request.include_artifact(), response); !status.ok()) return status;
    if (response.artifact_state() == v1::ARTIFACT_STATE_COMPILING) *awaited = answer->compile_key;
    return response;
  }

  bool IsTuned(const ResultKey& key) const override { return answers_.Find(key) != nullptr; }

  std::vector<space::Variant> Nearby(const Problem& problem, const v1::Device& device, v1::Policy policy,
                                     size_t most) const override {
    return VariantsNearby(Known({"", device.fingerprint(), policy}), problem, device, most);
  }

  uint64_t version() const override {
    return answers_.version() + (supply_ == nullptr ? 0 : supply_->version()) +
           (forecasts_ == nullptr ? 0 : forecasts_->version());
  }

  absl::StatusOr<std::optional<v1::Incumbent>> Served(const ResultKey& key) override {
    absl::StatusOr<v1::Incumbent> incumbent = store_.GetIncumbent(key.problem_text, key.device_class, key.policy);
    if (absl::IsNotFound(incumbent.status())) return std::nullopt;
    if (!incumbent.ok()) return incumbent.status();
    return *std::move(incumbent);
  }

  absl::StatusOr<v1::Incumbent> Promote(const v1::Incumbent& next, const std::optional<v1::Incumbent>& before,
                                        const store::JobWrite& write) override {
    absl::StatusOr<v1::Incumbent> promoted = store_.Promote(next, before.has_value() ? before->name() : "", write);
    if (promoted.ok()) LogPromotion(before, *promoted);
    return Changed(std::move(promoted));
  }

  absl::StatusOr<v1::Incumbent> RollBack(const ResultKey& key, absl::string_view why, absl::string_view to) override {
    absl::StatusOr<v1::Incumbent> served = store_.RollBack(key.problem_text, ClassServed(key), key.policy, why, to);
    if (served.ok()) LogRollBack(*served, why);
    return Changed(std::move(served));
  }

  absl::StatusOr<v1::Incumbent> Unpin(const ResultKey& key) override {
    return Changed(store_.Unpin(key.problem_text, ClassServed(key), key.policy));
  }

  absl::StatusOr<v1::Baseline> RecordBaseline(const v1::Baseline& baseline) override {
    return Changed(store_.RecordBaseline(baseline));
  }

  void TrialsAdded(const ResultKey& key) override { Refresh({key}); }
  void Reread(const std::vector<ResultKey>& keys) override { Refresh(keys); }

 private:
  using All = std::unordered_map<std::string, AnswerPtr>;         // by the key's text
  using Shipped = std::map<std::string, std::vector<AnswerPtr>>;  // by the key's text, without a problem

  // What answers for the class and the policy of the key may be derived from: what was tuned here, and what was
  // shipped.
  std::vector<AnswerPtr> Known(const ResultKey& key) const {
    std::vector<AnswerPtr> known = answers_.Of(key.device_class, key.policy);
    const std::shared_ptr<const Shipped> all = AllShipped();
    const auto shipped = all->find(ToText(ResultKey{"", key.device_class, key.policy}));
    if (shipped != all->end()) known.insert(known.end(), shipped->second.begin(), shipped->second.end());
    return known;
  }

  std::shared_ptr<const Shipped> AllShipped() const {
    const std::lock_guard<std::mutex> lock(shipping_);
    return shipped_;
  }

  // Of every class that is known: this host's and the fleet's, whose hosts may be gone for now.
  void PublishShipped() {
    auto shipped = std::make_shared<Shipped>();
    const auto add = [&](const v1::Device& device) {
      for (const PriorTable& table : ShippedPriors()) {
        const auto [it, fresh] = shipped->try_emplace(ToText(ResultKey{"", device.fingerprint(), table.policy}));
        if (fresh) it->second = PriorAnswers(ShippedPriors(), device, table.policy, host_.families);
      }
    };
    if (host_.fleet != nullptr) {
      for (const v1::Device* device : host_.fleet->Known()) add(*device);
    }
    for (const v1::Device& device : host_.devices) add(device);
    const std::lock_guard<std::mutex> lock(shipping_);
    shipped_ = std::move(shipped);
  }

  // That is best by the objective asked for, and acceptable; null where there is none.
  static AnswerPtr AlternativeOf(const Answer& answer, const v1::GetBestRequest& request) {
    if (!IsByEnergy(request.objective())) return nullptr;
    for (const Answer::Alternative& one : answer.alternatives) {
      if (one.objective != request.objective() || one.answer == nullptr) continue;
      if (Acceptable(request, one.answer->response.provenance())) return one.answer;
    }
    return nullptr;
  }

  // The answer in memory, or one derived from others; null when none is acceptable, with what was `tried`.
  AnswerPtr Choose(const v1::GetBestRequest& request, const Problem& problem, const ResultKey& key,
                   const std::vector<const v1::Device*>& cards, std::vector<std::string>& tried) {
    if (AnswerPtr answer = answers_.Find(key); answer == nullptr) {
      tried.push_back("it was never tuned there");
    } else if (AnswerPtr other = AlternativeOf(*answer, request); other != nullptr) {
      return other;
    } else if (Acceptable(request, answer->response.provenance())) {
      return answer;
    } else {
      tried.push_back(absl::StrCat("its answer is ", Provenance_Name(answer->response.provenance()).substr(11),
                                   ", which is not acceptable"));
    }
    if (cards.empty()) {
      tried.push_back(
          absl::StrCat("this host has no such device to answer for",
                       host_.devices.empty() ? "" : absl::StrCat("; available devices: ", DeviceNames(host_))));
      return nullptr;
    }
    const v1::Device* const device = cards.front();
    if (Acceptable(request, v1::PROVENANCE_NEAREST)) {
      if (AnswerPtr answer = Expected(request, problem, key, *device); answer != nullptr) return answer;
      AnswerPtr answer = answers_.Derived(key, NameOf("nearest"), [&] {
        return MakeNearest(Known(key), problem, *device, key.policy, host_, supply_);
      });
      if (answer != nullptr) return answer;
      tried.push_back("no variant tuned for a near problem is feasible");
    }
    if (Acceptable(request, v1::PROVENANCE_HEURISTIC)) {
      AnswerPtr answer = answers_.Derived(key, NameOf("heuristic"),
                                          [&] { return MakeHeuristic(problem, *device, key.policy, host_, supply_); });
      if (answer != nullptr) return answer;
      tried.push_back("no kernel family has a variant for it");
    }
    return nullptr;
  }

  // What is expected to be the fastest; null where nothing is, and where lengths are asked for besides, which it does
  // not hold for.
  AnswerPtr Expected(const v1::GetBestRequest& request, const Problem& problem, const ResultKey& key,
                     const v1::Device& device) {
    if (forecasts_ == nullptr || request.include_domains()) return nullptr;
    const std::optional<Forecast> forecast = forecasts_->Ask(problem, device, key.policy);
    if (!forecast.has_value()) return nullptr;
    return answers_.Derived(key, NameOf(absl::StrCat("expected ", forecast->variant.ToText())), [&] {
      return MakeExpected(Known(key), *forecast, problem, device, key.policy, host_, supply_);
    });
  }

  // An answer that has the domains of `answer`, null for a miss, and nothing else.
  AnswerPtr WithDomains(const v1::GetBestRequest& request, const Problem& problem, const ResultKey& key,
                        const v1::Device& device, const AnswerPtr& answer) {
    std::string name = "domains";
    for (const auto provenance : {v1::PROVENANCE_EXACT, v1::PROVENANCE_TIE, v1::PROVENANCE_STALE,
                                  v1::PROVENANCE_NEAREST, v1::PROVENANCE_HEURISTIC}) {
      absl::StrAppend(&name, Acceptable(request, provenance) ? " 1" : " 0");
    }
    return answers_.Derived(key, NameOf(name), [&] {
      DomainQuestion question{problem, answer, &device, {}, nullptr};
      std::vector<AnswerPtr> near;
      for (AnswerPtr& one : Known(key)) {
        if (!Distance(one->problem, problem).has_value()) continue;
        if (!IsShipped(*one)) question.tuned.push_back(one->problem);
        near.push_back(std::move(one));
      }
      question.answer_for = [&](const Problem& other) -> AnswerPtr {
        AnswerPtr found;
        if (Acceptable(request, v1::PROVENANCE_NEAREST)) {
          found = MakeNearest(near, other, device, key.policy, host_, supply_);
        }
        if (found == nullptr && Acceptable(request, v1::PROVENANCE_HEURISTIC)) {
          found = MakeHeuristic(other, device, key.policy, host_, supply_);
        }
        return found;
      };
      auto domains = std::make_shared<Answer>();
      *domains->response.mutable_domains() = DomainsFor(question);
      return domains;
    });
  }

  // What is derived depends on which codes are useless.
  std::string NameOf(absl::string_view derived) const {
    return supply_ == nullptr ? std::string(derived) : absl::StrCat(derived, " ", supply_->useless());
  }

  // Whether there is code to launch the answer with, and, when asked for, its bytes.
  absl::Status AddCode(const AnswerPtr& answer, bool with_bytes, v1::GetBestResponse& response) {
    const v1::Provenance provenance = response.provenance();
    const bool untuned = provenance == v1::PROVENANCE_NEAREST || provenance == v1::PROVENANCE_HEURISTIC;
    if (untuned && supply_ != nullptr) SetCode(supply_->Ask(answer), response);
    const bool useless = untuned && supply_ != nullptr && supply_->IsUseless(answer->compile_key);
    if (!with_bytes || useless) return absl::OkStatus();
    // What is COMPILING, or NONE for the time being, may be there already, and nobody has looked yet.
    const absl::Status added = AddArtifact(*answer, store_, host_, response);
    if (!untuned || !(added.ok() || absl::IsDataLoss(added))) return added;
    if (added.ok() && !response.artifact().empty()) {
      SetCode({v1::ARTIFACT_STATE_READY, "", ""}, response);
      return absl::OkStatus();
    }
    response.clear_artifact_sha256();
    if (supply_ == nullptr) {
      SetCode({v1::ARTIFACT_STATE_NONE, "", "nobody has compiled it, and this daemon does so only to tune"}, response);
    } else if (response.artifact_state() == v1::ARTIFACT_STATE_READY) {
      SetCode(supply_->AskForLost(answer), response);
    }
    return absl::OkStatus();
  }

  static void SetCode(const CodeState& code, v1::GetBestResponse& response) {
    response.set_artifact_state(code.state);
    response.set_artifact_reason(code.why);
    if (code.state != v1::ARTIFACT_STATE_READY) {
      response.clear_artifact_sha256();
    } else if (!code.sha256.empty()) {
      response.set_artifact_sha256(code.sha256);
    }
  }

  // Passes on what the store has answered to a write.
  template <typename Result>
  absl::StatusOr<Result> Changed(absl::StatusOr<Result> written) {
    if (written.ok()) Refresh({KeyOf(*written)});
    return written;
  }
  ResultKey KeyOf(const v1::Incumbent& incumbent) const { return KeyFor(incumbent, host_); }
  ResultKey KeyOf(const v1::Baseline& baseline) const {
    return {baseline.problem_text(), ClassNamed(baseline.device_id(), host_), baseline.policy()};
  }

  // Some of all incumbents, newest first, and the baselines of their problems, newest first. What a class has of its
  // own goes before what a card of it was given when it was of another.
  template <typename Incumbents, typename Baselines>
  void Add(const Incumbents& incumbents, const Baselines& baselines, All& all) const {
    std::unordered_map<std::string, std::vector<v1::Baseline>> of_problem;
    for (const v1::Baseline& baseline : baselines) of_problem[baseline.problem_text()].push_back(baseline);
    for (const v1::Incumbent& incumbent : incumbents) {
      absl::StatusOr<AnswerPtr> answer = MakeStoredAnswer(incumbent, of_problem[incumbent.problem_text()], host_);
      if (!answer.ok()) {  // a problem that earlier versions took
        LogWarning("incumbent not served", {{"incumbent", incumbent.name()}, {"why", answer.status().message()}});
        continue;
      }
      const ResultKey key = KeyOf(incumbent);
      AnswerPtr& served = all[ToText(key)];
      if (incumbent.device_class() == key.device_class || served == nullptr) served = *std::move(answer);
    }
  }

  absl::Status AddStored(const std::vector<v1::Incumbent>& incumbents, All& all) {
    std::set<std::string> problems;
    for (const v1::Incumbent& incumbent : incumbents) problems.insert(incumbent.problem_text());
    const absl::StatusOr<std::vector<v1::Baseline>> baselines = store_.BaselinesOf({problems.begin(), problems.end()});
    if (!baselines.ok()) return baselines.status();
    Add(incumbents, *baselines, all);
    return absl::OkStatus();
  }

  // What is served of the keys' problems now.
  absl::StatusOr<All> Read(const std::vector<ResultKey>& keys) {
    All all;
    std::set<std::string> problems;
    for (const ResultKey& key : keys) problems.insert(key.problem_text);
    if (problems.empty()) return all;
    const absl::StatusOr<std::vector<v1::Incumbent>> incumbents =
        store_.IncumbentsOf({problems.begin(), problems.end()});
    if (!incumbents.ok()) return incumbents.status();
    if (absl::Status added = AddStored(*incumbents, all); !added.ok()) return added;
    return all;
  }

  // That answers come from a copy; empty when they do not.
  std::string Copied() const {
    if (!copied_) return "";
    return absl::StrCat("from this daemon's copy of ", copy_time_, ": the database has not answered since it started");
  }

  // What the store serves counts, so that two changes at once cannot end in the older.
  void Refresh(const std::vector<ResultKey>& keys) {
    for (size_t begin = 0; begin < keys.size(); begin += kReadAtOnce) {
      const size_t end = std::min(begin + kReadAtOnce, keys.size());
      const std::lock_guard<std::mutex> one(changing_);
      RefreshLocked(
          {keys.begin() + static_cast<std::ptrdiff_t>(begin), keys.begin() + static_cast<std::ptrdiff_t>(end)});
    }
  }

  void RefreshLocked(const std::vector<ResultKey>& keys) {
    const absl::StatusOr<All> answers = Read(keys);
    for (const ResultKey& key : keys) {
      answers.ok() ? PutLocked(key, *answers) : NoteOutdatedLocked(key, answers.status());
    }
    some_are_outdated_ = !outdated_.empty();
  }

  void PutLocked(const ResultKey& key, const All& all) {
    const auto answer = all.find(ToText(key));
    answers_.Put(key, answer == all.end() ? nullptr : answer->second);
    if (outdated_.erase(ToText(key)) > 0) LogInfo("served as stored again", {{"problem", key.problem_text}});
  }

  void NoteOutdatedLocked(const ResultKey& key, const absl::Status& why) {
    const bool fresh = outdated_.insert_or_assign(ToText(key), std::string(why.message())).second;
    answers_.Touch();
    if (!fresh) return;
    LogError("the store cannot be read: what is served may be outdated",
             {{"problem", key.problem_text}, {"device class", key.device_class}, {"error", why.message()}});
  }

  // The incumbent that is the answer for `key`: the class's own, or else one that KeyFor gives to it; nullopt when
  // there is none.
  absl::StatusOr<std::optional<v1::Incumbent>> Answering(const ResultKey& key) {
    absl::StatusOr<std::optional<v1::Incumbent>> own = Served(key);
    if (!own.ok() || own->has_value()) return own;
    absl::StatusOr<store::Page<v1::Incumbent>> of_problem =
        store_.ListIncumbents({.problem_text = key.problem_text, .policy = key.policy}, store::kMostPageSize, "");
    if (!of_problem.ok()) return of_problem.status();
    for (v1::Incumbent& incumbent : of_problem->items) {
      if (ToText(KeyOf(incumbent)) == ToText(key)) return std::move(incumbent);
    }
    return std::nullopt;
  }

  // The class that the answer for `key` is stored for; that of `key` when no answer can be read.
  std::string ClassServed(const ResultKey& key) {
    const absl::StatusOr<std::optional<v1::Incumbent>> answering = Answering(key);
    return answering.ok() && answering->has_value() ? (*answering)->device_class() : key.device_class;
  }

  // Why the answer for `key` may be outdated, after another try; empty when it is not.
  std::string Doubt(const ResultKey& key) {
    if (!some_are_outdated_) return "";
    // A store that is away may answer late: one look-up waits for it, the others do not.
    const std::unique_lock<std::mutex> one(changing_, std::try_to_lock);
    if (!one.owns_lock()) return "it may be outdated: the store cannot be read";
    if (!outdated_.contains(ToText(key))) return "";
    RefreshLocked({key});
    const auto it = outdated_.find(ToText(key));
    return it == outdated_.end() ? "" : absl::StrCat("it may be outdated: the store cannot be read: ", it->second);
  }

  store::Store& store_;
  const Host& host_;
  CodeSupply* const supply_;    // may be null
  Forecasts* const forecasts_;  // may be null
  Answers answers_;
  mutable std::mutex shipping_;             // guards shipped_; held for no longer than a pointer is copied
  std::shared_ptr<const Shipped> shipped_;  // as of Load
  std::mutex changing_;
  std::map<std::string, std::string> outdated_;  // text of the key to why; guarded by changing_
  std::atomic<bool> some_are_outdated_ = false;
  std::string copy_time_;  // set before answers are asked for
  std::atomic<bool> copied_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Results>> Results::Load(store::Store& store, const Host& host, CodeSupply* supply,
                                                       Forecasts* forecasts) {
  auto results = std::make_unique<StoredResults>(store, host, supply, forecasts);
  if (absl::Status status = results->Load(); !status.ok()) return status;
  return results;
}

std::unique_ptr<Results> LoadFromCopy(const served::v1::Copy& copy, store::Store& store, const Host& host,
                                      CodeSupply* supply, Forecasts* forecasts) {
  auto results = std::make_unique<StoredResults>(store, host, supply, forecasts);
  results->LoadCopy(copy);
  return results;
}

}  // namespace attune::catalog
