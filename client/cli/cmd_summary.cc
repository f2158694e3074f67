// attune summary: the winner of each problem against the baselines, or the iterations of a loop.
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/existence.h"
#include "client/cli/json.h"
#include "client/cli/loop_summary.h"
#include "client/cli/pages.h"
#include "client/cli/text.h"
#include "client/cli/trial_text.h"
#include "client/cpp/files.h"

namespace attune::cli {
namespace {

using Where = std::tuple<std::string, std::string, v1::Policy>;  // problem, device, policy
// The newest time of each contender.
using Baselines = std::map<Where, std::map<std::string, double>>;

// Of every device: an incumbent is compared with those of the card that timed it, whichever was asked about.
absl::StatusOr<Baselines> AllBaselines(Client& client) {
  const v1::ListBaselinesRequest request;
  Baselines baselines;
  std::map<std::pair<Where, std::string>, int64_t> recorded;
  const absl::Status status = ForEach(
      client, &Client::ListBaselines, &v1::ListBaselinesResponse::baselines, request, kAll, [&](const v1::Baseline& b) {
        const Where where = {b.problem_text(), b.device_id(), b.policy()};
        const auto [it, first] = recorded.try_emplace({where, b.contender()}, b.record_time().seconds());
        if (!first && it->second > b.record_time().seconds()) return;
        it->second = b.record_time().seconds();
        baselines[where][b.contender()] = b.median_us();
      });
  if (!status.ok()) return status;
  return baselines;
}

Json SummaryJson(const v1::Incumbent& incumbent, const std::map<std::string, double>& times) {
  Json json = IncumbentJson(incumbent);
  json["type"] = "summary";
  json["speedups"] = Json::object();
  for (const auto& [contender, us] : times) {
    json["speedups"][contender] = us / ServedTiming(incumbent).median_us();
  }
  return json;
}

std::string SpeedupText(const v1::Incumbent& incumbent, const std::map<std::string, double>& times) {
  return absl::StrJoin(times, ", ", [&](std::string* out, const auto& time) {
    absl::StrAppend(out, Speedup(time.second / ServedTiming(incumbent).median_us()), " ", time.first);
  });
}

struct LoopArguments {
  std::string loop;
  std::string principal;
  std::string markdown;
};

absl::StatusOr<ExitCode> RunLoop(Session& session, const LoopArguments& arguments) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto iterations = IterationsOf(**client, arguments.loop, arguments.principal);
  if (!iterations.ok()) return iterations.status();
  if (!arguments.markdown.empty()) {
    absl::Status written = ReplaceFile(arguments.markdown, LoopMarkdown(arguments.loop, *iterations));
    if (!written.ok()) return written;
  }
  if (!session.json()) {
    PrintLoop(session, *iterations);
    return ExitCode::kOk;
  }
  for (const Iteration& iteration : *iterations) session.Emit(IterationJson(iteration));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunSummary(Session& session) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto baselines = AllBaselines(**client);
  if (!baselines.ok()) return baselines.status();
  v1::ListIncumbentsRequest request;
  request.set_device_id(session.options().device);
  Table table({{"problem", kName},
               {"device", kText, 2},
               {"policy", kText, 1},
               {"time us", kNumber},
               {"against baselines", kFlexible},
               {"variant", kVariant}});
  int64_t count = 0;
  const absl::Status status = ForEach(
      **client, &Client::ListIncumbents, &v1::ListIncumbentsResponse::incumbents, request, kAll,
      [&](const v1::Incumbent& incumbent) {
        if (!session.Lists(incumbent.policy())) return;
        ++count;
        const auto found = baselines->find({incumbent.problem_text(), incumbent.device_id(), incumbent.policy()});
        const bool timed = ServedTiming(incumbent).median_us() > 0;
        const auto times = timed && found != baselines->end() ? found->second : std::map<std::string, double>();
        if (session.json()) {
          session.Emit(SummaryJson(incumbent, times));
          return;
        }
        table.Row({incumbent.problem_text(), incumbent.device_id(), std::string(attune::Word(incumbent.policy())),
                   Micros(ServedTiming(incumbent).median_us()), SpeedupText(incumbent, times),
                   VariantText(incumbent.trial().variant())});
      });
  if (!status.ok()) return status;
  const CommonOptions& options = session.options();
  if (count == 0) {
    if (absl::Status known = CheckDevice(**client, options.device); !known.ok()) return known;
  }
  if (session.json()) return ExitCode::kOk;
  if (table.empty()) {
    session.Note(absl::StrCat("Nothing is tuned", options.device.empty() ? "" : " on ", options.device,
                              options.policy.empty() ? "" : " with policy ", options.policy,
                              " yet. To start: attune tune b2.h8.q512.d64.f16"));
  } else {
    session.Print(table);
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddSummary(CLI::App& app) {
  auto arguments = std::make_shared<LoopArguments>();
  CLI::Option* loop = app.add_option("--loop", arguments->loop,
                                     "Show the iterations of this loop of submissions instead, oldest first");
  app.add_option("--principal", arguments->principal, "Whose loop, as attune whoami names it; by default your own")
      ->needs(loop);
  app.add_option("--markdown", arguments->markdown, "Write the loop, with what each iteration changed, to this file")
      ->needs(loop);
  return [arguments](Session& session) {
    return arguments->loop.empty() ? RunSummary(session) : RunLoop(session, *arguments);
  };
}

}  // namespace attune::cli
