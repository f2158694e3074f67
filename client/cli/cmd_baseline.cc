// attune baseline: somebody else's times.
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/existence.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct BaselineArguments {
  std::string problem;
  std::string contender;
  double median_us = 0;
  double low_us = 0;
  double high_us = 0;
  std::string note;
};

absl::StatusOr<ExitCode> Record(Session& session, const BaselineArguments& arguments, const Problem& problem) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::RecordBaselineRequest request;
  v1::Baseline& baseline = *request.mutable_baseline();
  *baseline.mutable_problem() = attune::ToProto(problem);
  baseline.set_problem_text(ToText(problem));
  baseline.set_device_id(session.options().device);
  baseline.set_policy(session.policy());
  baseline.set_contender(arguments.contender);
  baseline.set_median_us(arguments.median_us);
  baseline.set_low_us(arguments.low_us);
  baseline.set_high_us(arguments.high_us);
  baseline.set_note(arguments.note);
  const auto recorded = (*client)->RecordBaseline(request);
  if (!recorded.ok()) return recorded.status();
  if (session.json()) {
    session.Emit(BaselineJson(*recorded));
  } else {
    session.Print(absl::StrCat("recorded ", recorded->contender(), " at ", Micros(recorded->median_us()), " us for ",
                               ToText(problem), " on ", recorded->device_id()));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> List(Session& session, const std::string& problem) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::ListBaselinesRequest request;
  request.set_problem(problem);
  request.set_device_id(session.options().device);
  Table table({{"problem", kName},
               {"device", kText, 2},
               {"policy", kText, 1},
               {"contender", kFlexible},
               {"time us", kNumber},
               {"recorded", kText, 3},
               {"note", kFlexible, 4}});
  int64_t count = 0;
  const absl::Status status =
      ForEach(**client, &Client::ListBaselines, &v1::ListBaselinesResponse::baselines, request, kAll,
              [&](const v1::Baseline& baseline) {
                if (!session.Lists(baseline.policy())) return;
                ++count;
                if (session.json()) {
                  session.Emit(BaselineJson(baseline));
                  return;
                }
                table.Row({baseline.problem_text(), baseline.device_id(), std::string(attune::Word(baseline.policy())),
                           baseline.contender(), Micros(baseline.median_us()), LocalTime(baseline.record_time()),
                           baseline.note()});
              });
  if (!status.ok()) return status;
  if (count == 0) {
    if (absl::Status known = CheckDevice(**client, session.options().device); !known.ok()) return known;
  }
  if (session.json()) return ExitCode::kOk;
  if (table.empty()) {
    session.Note("No baselines. To record one: attune baseline PROBLEM NAME MEDIAN_US");
  } else {
    session.Print(table);
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunBaseline(Session& session, const BaselineArguments& arguments) {
  if (arguments.problem.empty()) return List(session, "");
  const auto problem = ParseProblem(arguments.problem);
  if (!problem.ok()) return problem.status();
  if (arguments.contender.empty()) return List(session, ToText(*problem));
  if (arguments.median_us > 0) return Record(session, arguments, *problem);
  return absl::InvalidArgumentError("median_us is missing; it is the contender's median time in microseconds");
}

}  // namespace

Action AddBaseline(CLI::App& app) {
  auto arguments = std::make_shared<BaselineArguments>();
  AddProblemArgument(app, &arguments->problem);
  app.add_option("contender", arguments->contender, "Whose time it is: torch-sdpa-flash-2.11");
  AddMicros(app, "median_us", &arguments->median_us, "Its median");
  AddMicros(app, "--low", &arguments->low_us, "Lower end of the median's interval");
  AddMicros(app, "--high", &arguments->high_us, "Upper end of the median's interval");
  app.add_option("--note", arguments->note, "How it was measured");
  return [arguments](Session& session) { return RunBaseline(session, *arguments); };
}

}  // namespace attune::cli
