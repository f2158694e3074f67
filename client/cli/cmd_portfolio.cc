// attune portfolio: a few variants for many problems, and which of them each length takes.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/existence.h"
#include "client/cli/follow.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/portfolio.h"
#include "client/cli/preflight_text.h"
#include "client/cli/problems.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct PortfolioArguments {
  std::vector<std::string> problems;  // "PROBLEM" or "PROBLEM=WEIGHT", or "-"
  int64_t variants = 4;
  int64_t candidates = kCandidates;
  bool tune = false;
};

struct Weighted {
  Problem problem;
  double weight = 1;
};

absl::StatusOr<Weighted> ParseWeighted(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  const absl::StatusOr<Problem> problem = ParseProblem(absl::StripAsciiWhitespace(parts.first));
  if (!problem.ok()) return problem.status();
  Weighted weighted = {.problem = *problem};
  if (parts.first.size() == text.size()) return weighted;
  const bool number = absl::SimpleAtod(parts.second, &weighted.weight) && std::isfinite(weighted.weight);
  if (number && weighted.weight > 0) return weighted;
  return absl::InvalidArgumentError(
      absl::StrCat("the weight of ", ToText(*problem), " is '", parts.second, "'; allowed: numbers above 0"));
}

absl::StatusOr<std::vector<Weighted>> ReadWeighted(Session& session, const std::vector<std::string>& arguments) {
  std::vector<Weighted> all;
  const auto add = [&all](absl::string_view text) -> absl::Status {
    absl::StatusOr<Weighted> one = ParseWeighted(text);
    if (!one.ok()) return one.status();
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const Weighted& w) { return w.problem == one->problem; });
    if (same != all.end()) {
      same->weight += one->weight;
    } else {
      all.push_back(*std::move(one));
    }
    return absl::OkStatus();
  };
  for (const std::string& argument : arguments) {
    const absl::Status status = argument == kStandardInput ? ForEachLine(session, add) : add(argument);
    if (!status.ok()) return status;
  }
  return all;
}

// The newest times.
absl::StatusOr<VariantTimes> TimesOf(Session& session, Client& client, const std::string& device,
                                     const Problem& problem) {
  v1::ListTrialsRequest request;
  request.mutable_filter()->set_problem(ToText(problem));
  request.mutable_filter()->set_device_id(device);
  request.mutable_filter()->set_policy(session.policy());
  request.mutable_filter()->add_verdicts(v1::VERDICT_OK);
  VariantTimes times;
  const absl::Status status =
      ForEach(client, &Client::ListTrials, &v1::ListTrialsResponse::trials, request, kAll, [&](const v1::Trial& trial) {
        if (trial.timing().median_us() <= 0) return;
        times.try_emplace(VariantText(trial.variant()), trial.timing().median_us());
      });
  if (!status.ok()) return status;
  return times;
}

// Has the server time those of `candidates` that have no time yet and are feasible.
absl::StatusOr<ExitCode> TuneMissing(Session& session, Client& client, const std::string& device,
                                     const Problem& problem, const std::vector<std::string>& candidates,
                                     const VariantTimes& known) {
  v1::PreflightRequest space = MakePreflightRequest(session, problem, {});
  space.set_device_id(device);
  space.set_list_variants(true);
  space.set_ignore_advice(true);
  const auto listed = client.Preflight(space);
  if (!listed.ok()) return listed.status();
  std::set<std::string> feasible;
  for (const v1::Variant& variant : listed->variants()) feasible.insert(VariantText(variant));
  v1::TuneRequest request;
  *request.mutable_problem() = attune::ToProto(problem);
  request.set_device_id(device);
  request.set_policy(session.policy());
  for (const std::string& candidate : candidates) {
    if (!known.contains(candidate) && feasible.contains(candidate)) request.add_required()->set_text(candidate);
  }
  if (request.required().empty()) return ExitCode::kOk;
  // What is required comes first, so that as many trials are those alone.
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
  request.mutable_strategy()->set_max_trials(request.required_size());
  request.set_check_all(true);  // what is slow here is what the portfolio weighs
  const auto operation = client.Tune(std::move(request));
  if (!operation.ok()) return operation.status();
  return Follow(session, *operation);
}

absl::StatusOr<PortfolioTimes> Gather(Session& session, Client& client, const std::string& device,
                                      const std::vector<Weighted>& problems, const PortfolioArguments& arguments) {
  std::vector<VariantTimes> times;
  for (const Weighted& one : problems) {
    absl::StatusOr<VariantTimes> some = TimesOf(session, client, device, one.problem);
    if (!some.ok()) return some.status();
    times.push_back(*std::move(some));
  }
  const std::vector<std::string> candidates = CandidatesOf(times, static_cast<size_t>(arguments.candidates));
  std::vector<Problem> shapes;
  std::vector<double> weights;
  for (size_t i = 0; i < problems.size(); ++i) {
    shapes.push_back(problems[i].problem);
    weights.push_back(problems[i].weight);
    if (!arguments.tune) continue;
    const auto tuned = TuneMissing(session, client, device, problems[i].problem, candidates, times[i]);
    if (!tuned.ok()) return tuned.status();
    if (*tuned == ExitCode::kInterrupted) return absl::CancelledError("interrupted; what was timed is kept");
    absl::StatusOr<VariantTimes> now = TimesOf(session, client, device, problems[i].problem);
    if (!now.ok()) return now.status();
    times[i] = *std::move(now);
  }
  return TimesOfCandidates(std::move(shapes), std::move(weights), times, candidates);
}

// "A", "B", ... of the portfolio's variants.
std::string Letter(const Portfolio& portfolio, size_t variant) {
  const auto at = std::find(portfolio.variants.begin(), portfolio.variants.end(), variant);
  const auto index = static_cast<size_t>(at - portfolio.variants.begin());
  return index < 26 ? std::string(1, static_cast<char>('A' + index)) : absl::StrCat("V", index + 1);
}

std::string Loss(double loss) { return absl::StrFormat("%.1f %%", 100 * loss); }

void PrintPortfolio(Session& session, const PortfolioTimes& times, const Portfolio& portfolio) {
  Table kept({{"variant"}, {"mean loss", kNumber}, {"worst loss", kNumber}, {"", kVariant}});
  for (size_t i = 0; i < portfolio.variants.size(); ++i) {
    const size_t variant = portfolio.variants[i];
    kept.Row({Letter(portfolio, variant), Loss(portfolio.mean_loss[i]), Loss(portfolio.worst_loss[i]),
              times.variants[variant]});
  }
  session.Print(kept);
  session.Print(absl::string_view(""));
  Table rows({{"problem", kName},
              {"weight", kNumber},
              {"variant"},
              {"time us", kNumber},
              {"best us", kNumber},
              {"loss", kNumber}});
  for (size_t i = 0; i < times.problems.size(); ++i) {
    const size_t variant = portfolio.of_problem[i];
    const std::string weight = absl::StrFormat("%g", times.weights[i]);
    if (variant == Portfolio::kNone) {
      rows.Row({ToText(times.problems[i]), weight, {"none", Color::kRed}, "", Micros(times.best_us[i]), ""});
      continue;
    }
    const double us = times.us[i][variant];
    rows.Row({ToText(times.problems[i]), weight, Letter(portfolio, variant), Micros(us), Micros(times.best_us[i]),
              Loss(us / times.best_us[i] - 1)});
  }
  session.Print(rows);
  const DispatchTable dispatch = DispatchByLength(times, portfolio);
  if (dispatch.ranges.empty()) return;
  session.Print(absl::string_view(""));
  Table ranges({{absl::StrCat("length of ", dispatch.axis)}, {"variant"}});
  for (const DispatchRange& range : dispatch.ranges) {
    ranges.Row(
        {range.last == 0 ? absl::StrCat(range.first, " and more") : absl::StrCat(range.first, " to ", range.last),
         Letter(portfolio, range.variant)});
  }
  session.Print(ranges);
}

Json PortfolioJson(const std::string& device, const PortfolioTimes& times, const Portfolio& portfolio) {
  Json json = {{"type", "portfolio"}, {"device", device}, {"variants", Json::array()}, {"rows", Json::array()}};
  for (size_t i = 0; i < portfolio.variants.size(); ++i) {
    json["variants"].push_back({{"variant", times.variants[portfolio.variants[i]]},
                                {"mean_loss", portfolio.mean_loss[i]},
                                {"worst_loss", portfolio.worst_loss[i]}});
  }
  for (size_t i = 0; i < times.problems.size(); ++i) {
    const size_t variant = portfolio.of_problem[i];
    const bool none = variant == Portfolio::kNone;
    json["rows"].push_back({{"problem", ToText(times.problems[i])},
                            {"weight", times.weights[i]},
                            {"variant", none ? Json() : Json(times.variants[variant])},
                            {"latency_ms", none ? Json() : Json(times.us[i][variant] / 1e3)},
                            {"best_latency_ms", times.best_us[i] > 0 ? Json(times.best_us[i] / 1e3) : Json()}});
  }
  const DispatchTable dispatch = DispatchByLength(times, portfolio);
  json["axis"] = dispatch.axis.empty() ? Json() : Json(dispatch.axis);
  json["ranges"] = Json::array();
  for (const DispatchRange& range : dispatch.ranges) {
    json["ranges"].push_back({{"first", range.first},
                              {"last", range.last == 0 ? Json() : Json(range.last)},
                              {"variant", times.variants[range.variant]}});
  }
  return json;
}

// Of one card: its times alone compare.
absl::StatusOr<std::string> CardOf(Session& session, Client& client) {
  if (!session.options().device.empty()) return session.options().device;
  const auto host = client.ListDevices();
  if (!host.ok()) return host.status();
  if (host->devices().empty()) return absl::NotFoundError("the server has no device");
  return host->devices(0).id();
}

absl::StatusOr<ExitCode> RunPortfolio(Session& session, const PortfolioArguments& arguments) {
  if (arguments.variants == 0 || arguments.candidates == 0) {
    return absl::InvalidArgumentError("--variants and --candidates: allowed: 1 and more");
  }
  const auto problems = ReadWeighted(session, arguments.problems);
  if (!problems.ok()) return problems.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto device = CardOf(session, **client);
  if (!device.ok()) return device.status();
  const auto times = Gather(session, **client, *device, *problems, arguments);
  if (!times.ok()) return times.status();
  if (times->variants.empty()) {
    if (absl::Status known = CheckDevice(**client, session.options().device); !known.ok()) return known;
    return absl::NotFoundError(absl::StrCat("none of these problems has a trial that is OK on ", *device,
                                            "; tune some of them first, such as: attune tune ",
                                            ToText(problems->front().problem)));
  }
  const Portfolio portfolio = ChoosePortfolio(*times, static_cast<size_t>(arguments.variants));
  if (session.json()) {
    session.Emit(PortfolioJson(*device, *times, portfolio));
  } else {
    PrintPortfolio(session, *times, portfolio);
  }
  const auto uncovered = std::count(portfolio.of_problem.begin(), portfolio.of_problem.end(), Portfolio::kNone);
  if (uncovered == 0) return ExitCode::kOk;
  session.Note(absl::StrCat(Counted(uncovered, "problem"), " without a time of any of these variants",
                            arguments.tune ? "" : "; --tune takes the times that are missing"));
  return ExitCode::kNotFound;
}

}  // namespace

Action AddPortfolio(CLI::App& app) {
  auto arguments = std::make_shared<PortfolioArguments>();
  app.add_option("problem", arguments->problems,
                 "Problems, each with a weight if it counts more or less than once: b1.h8.q512.d64.f16=3. With - they "
                 "are read from standard input, one per line")
      ->required();
  AddCount(app, "--variants", &arguments->variants, "At most this many variants; default 4");
  AddCount(app, "--candidates", &arguments->candidates,
           absl::StrCat("Choose among this many of each problem's fastest variants; default ", kCandidates));
  app.add_flag("--tune", arguments->tune, "First time those of the candidates that a problem has no time of");
  return [arguments](Session& session) { return RunPortfolio(session, *arguments); };
}

}  // namespace attune::cli
