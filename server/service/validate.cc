#include "server/service/validate.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/attune/objective.h"
#include "proto/attune/problem.h"
#include "proto/attune/quote.h"
#include "server/base/reason.h"
#include "server/catalog/policy.h"
#include "server/space/space.h"
#include "server/store/page_token.h"
#include "server/submit/limits.h"
#include "server/sweep/sweep_plan.h"

namespace attune::service {
namespace {

constexpr int64_t kLongestWait = 60;  // seconds
constexpr double kMostMicros = 1e12;  // eleven days

absl::Status NormaliseProblem(v1::Problem* problem) {
  absl::StatusOr<Problem> plain = FromProto(*problem);
  if (!plain.ok()) return WithReason(plain.status(), "INVALID_PROBLEM");
  *problem = ToProto(*plain);
  return absl::OkStatus();
}

// Empty stays empty on a host without a device.
void DefaultDevice(std::string* id, const catalog::Host& host) {
  if (!id->empty()) return;
  if (const v1::Device* device = catalog::DefaultDevice(host); device != nullptr) *id = device->id();
}

// For work: the device must be here. Look-ups take any name, as results may have been tuned elsewhere.
absl::Status PresentDevice(std::string* id, const catalog::Host& host) {
  if (host.devices.empty()) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "this host has no device to run kernels on; ",
                          host.fleet != nullptr ? "ask one that has (`attune hosts`)"
                                                : "`attune devices` says which backends are missing and why")),
                      "NO_DEVICE");
  }
  DefaultDevice(id, host);
  if (!catalog::DevicesHere(host, *id).empty()) return absl::OkStatus();
  return WithReason(absl::NotFoundError(absl::StrCat("device_id is ", Quoted(*id),
                                                     "; available devices: ", catalog::DeviceNames(host))),
                    "UNKNOWN_DEVICE");
}

absl::Status NoSuchDevice(absl::string_view id, const catalog::Host& host) {
  const std::string here = catalog::DeviceNames(host);
  const std::string fleet = host.fleet->Names();
  if (here.empty() && fleet.empty()) {
    return WithReason(absl::FailedPreconditionError("no host that is alive has a device to run kernels on; `attune "
                                                    "hosts` lists the hosts (after the database was away they are "
                                                    "alive again within 5 s)"),
                      "NO_DEVICE");
  }
  const std::optional<v1::Host> away = host.fleet->HostAway(id);
  const std::string whose = away.has_value()
                                ? absl::StrCat(", a card of ", away->name(), ", which is ",
                                               absl::StripPrefix(v1::Host::State_Name(away->state()), "STATE_"))
                                : "";
  return WithReason(absl::NotFoundError(absl::StrCat("device_id is ", Quoted(id), whose,
                                                     "; available here: ", here.empty() ? "none" : here,
                                                     "; classes of all hosts: ", fleet.empty() ? "none" : fleet)),
                    "UNKNOWN_DEVICE");
}

// For work that any host may do: a device that is here, a class that some live host has, or another host's card.
absl::Status DeviceForWork(std::string* id, const catalog::Host& host) {
  if (host.fleet == nullptr) return PresentDevice(id, host);
  const std::vector<catalog::FleetClass> classes = host.fleet->Classes();
  if (id->empty()) {
    if (classes.size() == 1) {
      *id = classes.front().device->id();
    } else if (!host.devices.empty()) {
      *id = host.devices.front().id();
    }
  }
  if (!catalog::DevicesHere(host, *id).empty()) return absl::OkStatus();
  for (const catalog::FleetClass& one : classes) {
    if (one.device->id() == *id || one.device->fingerprint() == *id) return absl::OkStatus();
  }
  return host.fleet->FindCard(*id).has_value() ? absl::OkStatus() : NoSuchDevice(*id, host);
}

// The same of a sweep's list of devices.
absl::Status DevicesForWork(std::string* list, const catalog::Host& host) {
  if (*list == "all" && !host.devices.empty()) return absl::OkStatus();
  std::vector<std::string> names = absl::StrSplit(*list, ',');
  for (std::string& name : names) {
    absl::StripAsciiWhitespace(&name);
    if (name.empty() && names.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("device_id is ", Quoted(*list), ", which has an empty name; names stand between commas"));
    }
    const absl::Status status = names.size() == 1 ? DeviceForWork(&name, host) : PresentDevice(&name, host);
    if (!status.ok()) return status;
  }
  *list = absl::StrJoin(names, ",");
  return absl::OkStatus();
}

// For times: one card of a class. What nothing here is called stays as it is, as for look-ups.
absl::Status OneCard(std::string* id, const catalog::Host& host) {
  const std::vector<const v1::Device*> cards = catalog::DevicesHere(host, *id);
  if (cards.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "device_id is ", Quoted(*id), ", which is a class of ", cards.size(),
        " devices here; times are one's alone, allowed: ",
        absl::StrJoin(cards, ", ",
                      [](std::string* out, const v1::Device* card) { absl::StrAppend(out, card->id()); })));
  }
  if (cards.size() == 1) *id = cards.front()->id();
  return absl::OkStatus();
}

template <typename Names>
absl::Status KnownFamilies(const Names& names, const catalog::Host& host) {
  for (const std::string& name : names) {
    bool found = false;
    for (const auto& family : host.families.Now()) found = found || family->name() == name;
    if (!found) {
      return WithReason(absl::NotFoundError(absl::StrCat("family ", Quoted(name), " is unknown; available: ",
                                                         absl::StrJoin(host.families.Now(), ", ",
                                                                       [](std::string* out, const auto& family) {
                                                                         absl::StrAppend(out, family->name());
                                                                       }))),
                        "UNKNOWN_FAMILY");
    }
  }
  return absl::OkStatus();
}

template <typename... Statuses>
absl::Status FirstError(Statuses... statuses) {
  for (const absl::Status& status : {absl::Status(statuses)...}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Canonical, so that filters match however the problem was spelled. Empty stays empty.
absl::Status NormaliseText(std::string* text) {
  if (text->empty()) return absl::OkStatus();
  absl::StatusOr<Problem> problem = ParseProblem(*text);
  if (!problem.ok()) return WithReason(problem.status(), "INVALID_PROBLEM");
  *text = ToText(*problem);
  return absl::OkStatus();
}

// Some family, of those named or of all, must understand all of `where`.
template <typename Names, typename Where>
absl::Status UnderstoodWhere(const Names& names, const Where& where, const catalog::Host& host) {
  if (where.empty()) return absl::OkStatus();
  const std::vector<std::string> conditions(where.begin(), where.end());
  absl::Status first;
  for (const auto& family : host.families.Now()) {
    const family::v1::Role role = family->manifest.role();
    if (role == family::v1::ROLE_REFERENCE || role == family::v1::ROLE_FLOOR) continue;
    if (!names.empty() && std::find(names.begin(), names.end(), family->name()) == names.end()) continue;
    const absl::Status understood = space::Understands(*family, conditions);
    if (understood.ok()) return understood;
    if (first.ok()) {
      first = absl::InvalidArgumentError(absl::StrCat(
          understood.message(), "; no family understands all of `where`: the parameters of ", family->name(), " are ",
          absl::StrJoin(family->manifest.parameters(), ", ",
                        [](std::string* out, const auto& parameter) { absl::StrAppend(out, parameter.name()); })));
    }
  }
  return first;
}

// As its family has it: `text` whole, and every parameter.
absl::Status NormaliseVariant(v1::Variant* variant, const catalog::Host& host) {
  std::string text = variant->text();
  if (text.empty()) {
    text = absl::StrCat(
        variant->family(), ":",
        absl::StrJoin(variant->parameters(), ",", [](std::string* out, const v1::ParameterValue& parameter) {
          absl::StrAppend(out, parameter.name(), "=", parameter.value());
        }));
  }
  absl::StatusOr<space::Variant> parsed = space::ParseVariant(text, host.families);
  if (!parsed.ok()) return WithReason(parsed.status(), "INVALID_VARIANT");
  *variant = parsed->ToProto();
  return absl::OkStatus();
}

absl::Status NormaliseVariants(google::protobuf::RepeatedPtrField<v1::Variant>* variants, const catalog::Host& host) {
  for (v1::Variant& variant : *variants) {
    if (absl::Status status = NormaliseVariant(&variant, host); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status NormaliseTexts(const char* field, google::protobuf::RepeatedPtrField<std::string>* texts) {
  for (int i = 0; i < texts->size(); ++i) {
    absl::StatusOr<Problem> problem = ParseProblem(texts->Get(i));
    if (!problem.ok()) {
      return WithReason(absl::InvalidArgumentError(absl::StrCat(field, "[", i, "]: ", problem.status().message())),
                        "INVALID_PROBLEM");
    }
    *texts->Mutable(i) = ToText(*problem);
  }
  return absl::OkStatus();
}

// Fields that every request for a problem on a device has.
template <typename Request>
absl::Status ProblemAndPolicy(Request& request) {
  if (absl::Status status = NormaliseProblem(request.mutable_problem()); !status.ok()) return status;
  request.set_policy(catalog::OrDefault(request.policy()));
  return absl::OkStatus();
}

// Cold runs have a flush of L2 and a wait between them, whose energy would count.
absl::Status EnergyAndPolicy(const char* prefix, v1::Objective objective, bool energy, v1::Policy policy) {
  if (policy != v1::POLICY_COLD || !(energy || IsByEnergy(objective))) return absl::OkStatus();
  const std::string asked =
      IsByEnergy(objective) ? absl::StrCat("objective is ", v1::Objective_Name(objective)) : "energy is true";
  return absl::InvalidArgumentError(absl::StrCat(prefix, asked, ", with policy cold; allowed: with hot and l2-warm"));
}

// Several cards are of one class, that of this server's first device where none is named.
absl::Status SeveralCards(v1::TuneRequest& request, const catalog::Host& host) {
  const int64_t cards = request.cards();
  if (cards == 0 || cards == 1) return absl::OkStatus();
  std::string& name = *request.mutable_device_id();
  if (name.empty() && !host.devices.empty()) name = host.devices.front().class_alias();
  if (absl::Status present = PresentDevice(&name, host); !present.ok()) return present;
  const std::vector<const v1::Device*> here = catalog::DevicesHere(host, name);
  const std::string& alias = here.front()->class_alias();
  if (name != alias) {
    return absl::InvalidArgumentError(absl::StrCat("cards is ", cards, ", and device_id ", Quoted(name),
                                                   " names one card; allowed: 1, or as device_id the card's class, ",
                                                   Quoted(alias)));
  }
  if (cards > 1 && cards <= static_cast<int64_t>(here.size())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cards is ", cards, "; allowed: 1 to ", here.size(),
                                                 ", the cards of class ", Quoted(alias), " here"));
}

// Whose code is to run: exactly one of a trial, a problem (with a variant, perhaps) and a submission (with a problem).
absl::Status OneSubject(v1::ProfiledCode& code, const catalog::Host& host) {
  constexpr absl::string_view kAllowed =
      "allowed: code.trial alone; code.problem, and with it code.variant; or code.submission, and with it code.problem";
  const bool variant = code.has_variant(), submission = !code.submission().empty();
  const bool more = code.has_problem() || variant || submission;
  if (code.trial().empty() ? !more : more) {
    return absl::InvalidArgumentError(
        absl::StrCat("code names ", more ? "a trial and more" : "nothing", "; ", kAllowed));
  }
  if (variant && (submission || !code.has_problem())) {
    return absl::InvalidArgumentError(
        absl::StrCat("code.variant stands ", submission ? "beside a submission" : "alone", "; ", kAllowed));
  }
  code.set_policy(catalog::OrDefault(code.policy()));
  if (code.has_problem()) {
    if (absl::Status status = NormaliseProblem(code.mutable_problem()); !status.ok()) return status;
  }
  return variant ? NormaliseVariant(code.mutable_variant(), host) : absl::OkStatus();
}

template <typename Request>
absl::Status CodeAndDevice(Request& request, const catalog::Host& host) {
  std::string device = request.device_id();  // empty stays empty: which one is the trial's matter
  return FirstError(OneSubject(*request.mutable_code(), host), PresentDevice(&device, host));
}

absl::Status CheckRegression(absl::string_view field, double regression) {
  if (regression >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", regression, "; allowed: shares such as 0.02"));
}

absl::Status KnownEffort(const char* field, v1::Strategy::Effort effort, v1::Strategy::Kind kind) {
  const bool learns = kind == v1::Strategy::KIND_GUIDED || kind == v1::Strategy::KIND_EVOLUTION;
  const bool all = kind == v1::Strategy::KIND_EXHAUSTIVE && effort == v1::Strategy::EFFORT_EXHAUSTIVE;
  if (learns || all || effort == v1::Strategy::EFFORT_UNSPECIFIED) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", v1::Strategy::Effort_Name(effort), ", with ",
                                                 v1::Strategy::Kind_Name(kind),
                                                 "; allowed: with KIND_GUIDED and KIND_EVOLUTION"));
}

}  // namespace

absl::Status Validate(v1::GetBestRequest& request, const catalog::Host& host) {
  const double wait = static_cast<double>(request.wait().seconds()) + 1e-9 * request.wait().nanos();
  if (wait > kLongestWait) {
    return absl::InvalidArgumentError(absl::StrCat("wait is ", wait, " s; allowed: 0 to ", kLongestWait, " s"));
  }
  DefaultDevice(request.mutable_device_id(), host);
  return ProblemAndPolicy(request);
}

absl::Status Validate(v1::ExplainRequest& request) {
  if (!request.has_best() && request.trial().empty() && request.submission().empty()) {
    return absl::InvalidArgumentError(
        "the request names nothing; allowed: trial (\"trials/123\"), submission (\"submissions/7\") or best");
  }
  if (!request.has_submission_problem()) return absl::OkStatus();
  if (request.submission().empty()) {
    return absl::InvalidArgumentError("submission_problem is set without submission; allowed: with it alone");
  }
  return NormaliseProblem(request.mutable_submission_problem());
}

absl::Status Validate(v1::TuneRequest& request, const catalog::Host& host) {
  v1::Strategy& strategy = *request.mutable_strategy();
  if (strategy.kind() == v1::Strategy::KIND_UNSPECIFIED) strategy.set_kind(v1::Strategy::KIND_EXHAUSTIVE);
  if (strategy.max_trials() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("strategy.max_trials is ", strategy.max_trials(), "; allowed: 0 (no limit) and more"));
  }
  if (absl::Status status = KnownEffort("strategy.effort", strategy.effort(), strategy.kind()); !status.ok()) {
    return status;
  }
  // Before a device is filled in.
  if (absl::Status several = SeveralCards(request, host); !several.ok()) return several;
  return FirstError(
      ProblemAndPolicy(request), EnergyAndPolicy("", request.objective(), request.energy(), request.policy()),
      KnownFamilies(request.families(), host), DeviceForWork(request.mutable_device_id(), host),
      UnderstoodWhere(request.families(), request.where(), host), NormaliseVariants(request.mutable_required(), host),
      NormaliseTexts("seed_from", request.mutable_seed_from()));
}

absl::Status Validate(v1::SweepRequest& request, const catalog::Host& host) {
  v1::SweepPlan& plan = *request.mutable_plan();
  if (plan.shapes().empty())
    return absl::InvalidArgumentError("plan.shapes is empty; a sweep needs at least one problem");
  if (absl::Status status = CheckRegression("plan.regression", plan.regression()); !status.ok()) return status;
  if (plan.budget().trials_per_problem() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "plan.budget.trials_per_problem is ", plan.budget().trials_per_problem(), "; allowed: 0 (no limit) and more"));
  }
  plan.set_policy(catalog::OrDefault(plan.policy()));
  return FirstError(KnownEffort("plan.effort", plan.effort(), sweep::StrategyOf(plan)),
                    EnergyAndPolicy("plan.", plan.objective(), /*energy=*/false, plan.policy()),
                    KnownFamilies(plan.families(), host), DevicesForWork(plan.mutable_device_id(), host),
                    UnderstoodWhere(plan.families(), plan.where(), host));
}

absl::Status Validate(v1::EvaluateVariantRequest& request, const catalog::Host& host) {
  if (absl::Status status = FirstError(ProblemAndPolicy(request), DeviceForWork(request.mutable_device_id(), host));
      !status.ok()) {
    return status;
  }
  if (request.pin() && request.on_miss()) {
    return absl::InvalidArgumentError("pin and on_miss are both set; at most one is allowed");
  }
  return NormaliseVariant(request.mutable_variant(), host);
}

absl::Status Validate(v1::SubmitRequest& request, const catalog::Host& host) {
  for (v1::Problem& problem : *request.mutable_problems()) {
    if (absl::Status status = NormaliseProblem(&problem); !status.ok()) return status;
  }
  request.set_policy(catalog::OrDefault(request.policy()));
  const int every = request.sanitize_every();
  if (every < 0 || every > submit::kMostSanitizeEvery) {
    return absl::InvalidArgumentError(
        absl::StrCat("sanitize_every is ", every, "; allowed: 0 (never) to ", submit::kMostSanitizeEvery));
  }
  if (every > 0 && request.loop().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sanitize_every is ", every, ", and loop is empty; only iterations of a loop have turns"));
  }
  std::string device = request.device_id();  // empty stays empty: which one is the kernel's matter
  return PresentDevice(&device, host);
}

absl::Status Validate(v1::ProfileRequest& request, const catalog::Host& host) { return CodeAndDevice(request, host); }

absl::Status Validate(v1::SanitizeRequest& request, const catalog::Host& host) { return CodeAndDevice(request, host); }

absl::Status Validate(v1::PreflightRequest& request, const catalog::Host& host) {
  DefaultDevice(request.mutable_device_id(), host);
  return FirstError(NormaliseProblem(request.mutable_problem()), KnownFamilies(request.families(), host),
                    UnderstoodWhere(request.families(), request.where(), host));
}

absl::Status Validate(v1::RollBackRequest& request, const catalog::Host& host) {
  DefaultDevice(request.mutable_device_id(), host);
  return ProblemAndPolicy(request);
}

absl::Status Validate(v1::UnpinRequest& request, const catalog::Host& host) {
  DefaultDevice(request.mutable_device_id(), host);
  return ProblemAndPolicy(request);
}

absl::Status Validate(v1::RetryTrialsRequest& request, const catalog::Host& host) {
  v1::TrialFilter& filter = *request.mutable_filter();
  constexpr absl::string_view kAllowed =
      "allowed: INFEASIBLE, COMPILE_ERROR, WRONG_RESULT, OUT_OF_BOUNDS, TIMEOUT, CRASHED and UNSTABLE";
  if (filter.verdicts().empty())
    return absl::InvalidArgumentError(absl::StrCat("filter.verdicts is empty; ", kAllowed));
  for (const int number : filter.verdicts()) {
    const auto verdict = static_cast<v1::Verdict>(number);
    const bool timed = verdict == v1::VERDICT_OK || verdict == v1::VERDICT_SLOW;
    if (v1::Verdict_IsValid(number) && verdict != v1::VERDICT_UNSPECIFIED && !timed && verdict != v1::VERDICT_LOST) {
      continue;
    }
    const absl::string_view why = timed ? ", which is not tried again but with tune's retry_known"
                                  : verdict == v1::VERDICT_LOST ? ", which is always tried again"
                                                                : ", which is no verdict";
    return absl::InvalidArgumentError(absl::StrCat("filter.verdicts has ",
                                                   v1::Verdict_IsValid(number) ? Word(verdict) : absl::StrCat(number),
                                                   why, "; ", kAllowed));
  }
  if (const v1::Device* device = catalog::FindDevice(host, filter.device_id()); device != nullptr) {
    filter.set_device_class(device->fingerprint());
    filter.clear_device_id();
  }
  return Validate(filter, host);
}

absl::Status Validate(v1::RecordBaselineRequest& request, const catalog::Host& host) {
  v1::Baseline& baseline = *request.mutable_baseline();
  if (baseline.contender().empty())
    return absl::InvalidArgumentError("baseline.contender is empty; name who was timed");
  if (baseline.median_us() <= 0 || baseline.median_us() > kMostMicros) {
    return absl::InvalidArgumentError(absl::StrCat("baseline.median_us is ", baseline.median_us(),
                                                   "; allowed: positive microseconds up to ", kMostMicros));
  }
  DefaultDevice(baseline.mutable_device_id(), host);
  // A server without a device has the results of others.
  if (!host.devices.empty()) {
    if (absl::Status status = PresentDevice(baseline.mutable_device_id(), host); !status.ok()) return status;
  }
  if (absl::Status status = FirstError(OneCard(baseline.mutable_device_id(), host), ProblemAndPolicy(baseline));
      !status.ok()) {
    return status;
  }
  baseline.set_problem_text(ToText(*FromProto(baseline.problem())));
  // 0: no interval.
  const bool ordered = (baseline.low_us() == 0 || baseline.low_us() <= baseline.median_us()) &&
                       (baseline.high_us() == 0 || baseline.high_us() >= baseline.median_us());
  if (baseline.low_us() < 0 || baseline.high_us() < 0 || !ordered || baseline.high_us() > kMostMicros) {
    return absl::InvalidArgumentError(absl::StrCat("baseline.low_us is ", baseline.low_us(), " and baseline.high_us ",
                                                   baseline.high_us(), "; allowed is a range around median_us, ",
                                                   baseline.median_us(), ", up to ", kMostMicros));
  }
  return absl::OkStatus();
}

absl::Status Validate(v1::ListBaselinesRequest& request, const catalog::Host& host) {
  return FirstError(NormaliseText(request.mutable_problem()), OneCard(request.mutable_device_id(), host));
}

absl::Status Validate(v1::ListRetimingsRequest& request) { return NormaliseText(request.mutable_problem()); }

absl::Status Validate(v1::ListTrendsRequest& request) {
  return FirstError(NormaliseText(request.mutable_problem()), CheckRegression("regression", request.regression()));
}

absl::Status Validate(v1::CompareTimesRequest& request) {
  if (request.policy() == v1::POLICY_UNSPECIFIED) request.set_policy(v1::POLICY_HOT);
  return FirstError(NormaliseText(request.mutable_problem()), CheckRegression("regression", request.regression()));
}

absl::Status Validate(v1::TrialFilter& filter, const catalog::Host& host) {
  const v1::Device* device = catalog::FindDevice(host, filter.device_id());
  const bool elsewhere = device != nullptr && catalog::DevicesHere(host, filter.device_id()).empty();
  if (device != nullptr && (elsewhere || device->id() != filter.device_id())) {
    if (device->uuid() == filter.device_id()) {
      filter.set_device_uuid(device->uuid());
    } else {
      filter.set_device_class(device->fingerprint());
    }
    filter.clear_device_id();
  }
  return NormaliseText(filter.mutable_problem());
}

absl::StatusOr<int> PageSize(int page_size) {
  if (page_size < 0) {
    return absl::InvalidArgumentError(absl::StrCat("page_size is ", page_size, "; allowed: 0 (",
                                                   store::kDefaultPageSize, ") and more, of which ",
                                                   store::kMostPageSize, " are given at most"));
  }
  return page_size == 0 ? store::kDefaultPageSize : std::min(page_size, store::kMostPageSize);
}

}  // namespace attune::service
