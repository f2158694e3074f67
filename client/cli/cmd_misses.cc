// attune misses: what was asked for and nobody has tuned.
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/existence.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

std::string AnswerText(const v1::Miss& miss) {
  return miss.provenance() == v1::PROVENANCE_UNSPECIFIED ? "none" : Word(miss.provenance());
}

void AddRow(const v1::Miss& miss, Table* table) {
  const bool known = miss.artifact_state() != v1::ARTIFACT_STATE_UNSPECIFIED;
  table->Row({miss.problem_text(), miss.device_id(), std::string(attune::Word(miss.policy())),
              absl::StrCat(miss.count()), LocalTime(miss.first_time()), LocalTime(miss.last_time()), AnswerText(miss),
              known ? Word(miss.artifact_state()) : "", miss.provenance_detail()});
}

absl::StatusOr<ExitCode> RunMisses(Session& session, int64_t limit) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::ListMissesRequest request;
  request.set_device_id(session.options().device);
  Table table({{"problem", kName},
               {"device", kText, 2},
               {"policy", kText, 3},
               {"asked", kNumber},
               {"first", kText, 5},
               {"last", kText, 4},
               {"answer"},
               {"code"},
               {"what", kFlexible, 1}});
  int64_t count = 0;
  const absl::Status status = ForEach(**client, &Client::ListMisses, &v1::ListMissesResponse::misses, request, limit,
                                      [&](const v1::Miss& miss) {
                                        if (!session.Lists(miss.policy())) return false;
                                        ++count;
                                        if (session.json()) {
                                          session.Emit(MissJson(miss));
                                        } else {
                                          AddRow(miss, &table);
                                        }
                                        return true;
                                      });
  if (!status.ok()) return status;
  if (count == 0) {
    if (absl::Status known = CheckDevice(**client, session.options().device); !known.ok()) return known;
  }
  if (session.json()) return ExitCode::kOk;
  if (table.empty()) {
    const CommonOptions& options = session.options();
    const bool any = options.device.empty() && options.policy.empty();
    session.Note(any ? "No misses: since the server's start, everything that was asked for had been tuned."
                     : absl::StrCat("No misses", options.device.empty() ? "" : " on ", options.device,
                                    options.policy.empty() ? "" : " with policy ", options.policy,
                                    " since the server's start."));
    return ExitCode::kOk;
  }
  session.Print(table);
  if (count == limit) session.Note(absl::StrCat("The first ", count, "; --limit 0 shows all."));
  return ExitCode::kOk;
}

}  // namespace

Action AddMisses(CLI::App& app) {
  auto limit = std::make_shared<int64_t>(50);
  AddCount(app, "--limit", limit.get(), "At most this many; 0: all; default 50");
  return [limit](Session& session) { return RunMisses(session, *limit); };
}

}  // namespace attune::cli
