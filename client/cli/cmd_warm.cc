// attune warm: has the server compile what answers many problems, so that the first launch of none of them waits.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/problems.h"
#include "client/cli/sweep_plan.h"
#include "client/cli/text.h"
#include "proto/attune/expand_plan.h"

namespace attune::cli {
namespace {

// Asked for at once: as many compiles as the server may do side by side, and a few that are there already.
constexpr int kAskers = 16;
constexpr absl::Duration kWait = absl::Seconds(30);  // of one call; who has no code then asks again

struct WarmArguments {
  std::vector<std::string> problems;
  std::string max_time;
};

struct Wanted {
  BestQuery query;
  absl::StatusOr<AnswerPtr> answer = absl::UnknownError("not asked");
};

void Add(const Session& session, std::vector<Wanted>& wanted, const Problem& problem, const v1::SweepPlan& plan) {
  Wanted& one = wanted.emplace_back();
  one.query.problem = problem;
  one.query.device_id = session.options().device.empty() ? plan.device_id() : session.options().device;
  const bool own = session.options().policy.empty() && plan.policy() != v1::POLICY_UNSPECIFIED;
  one.query.policy = own ? plan.policy() : session.policy();
}

// A problem's text, "-", or a file that has a sweep's plan, of which only problems, device and policy count.
absl::StatusOr<std::vector<Wanted>> Read(Session& session, const std::vector<std::string>& arguments) {
  std::vector<Wanted> wanted;
  for (const std::string& argument : arguments) {
    v1::SweepPlan plan;
    absl::StatusOr<std::vector<Problem>> problems = std::vector<Problem>();
    std::error_code ignored;
    if (argument != kStandardInput && std::filesystem::exists(argument, ignored)) {
      absl::StatusOr<v1::SweepPlan> read = ReadSweepPlan(argument);
      if (!read.ok()) return read.status();
      plan = *std::move(read);
      problems = ExpandPlan(plan);
    } else {
      problems = ReadProblems(session, argument);
    }
    if (!problems.ok()) return problems.status();
    for (const Problem& problem : *problems) Add(session, wanted, problem, plan);
  }
  return wanted;
}

// Asks for all of them from several threads.
class Asking {
 public:
  Asking(Client& client, std::vector<Wanted>& wanted, absl::Time until)
      : client_(client), wanted_(wanted), until_(until) {
    const int threads = static_cast<int>(std::min<size_t>(kAskers, wanted.size()));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Ask(); });
  }
  ~Asking() {
    for (std::thread& thread : threads_) thread.join();
  }

  // Blocks until more than `count` of them have been answered; how many have.
  size_t Await(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ > count; });
    return done_;
  }

 private:
  void Ask() {
    for (size_t i = next_++; i < wanted_.size(); i = next_++) {
      Wanted& one = wanted_[i];
      do {
        one.query.wait = std::clamp(until_ - absl::Now(), absl::ZeroDuration(), kWait);
        one.answer = client_.GetBest(one.query);
      } while (one.answer.ok() && (*one.answer)->artifact_state() == v1::ARTIFACT_STATE_COMPILING &&
               absl::Now() < until_);
      const std::lock_guard lock(mutex_);
      ++done_;
      changed_.notify_all();
    }
  }

  Client& client_;
  std::vector<Wanted>& wanted_;
  const absl::Time until_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t done_ = 0;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

absl::StatusOr<ExitCode> Report(Session& session, const std::vector<Wanted>& wanted, absl::Duration took) {
  ExitCode code = ExitCode::kOk;
  size_t ready = 0;
  Table table({{"problem", kName}, {"provenance"}, {"variant", kVariant}, {"code", kFlexible}});
  for (const Wanted& one : wanted) {
    const std::string problem = ToText(one.query.problem);
    if (!one.answer.ok()) {
      if (code == ExitCode::kOk) code = ExitCodeOf(one.answer.status());
      session.Note(absl::StrCat("attune: ", problem, ": ", OneLine(one.answer.status().message())));
      continue;
    }
    const v1::GetBestResponse& answer = **one.answer;
    const bool has_code = answer.artifact_state() == v1::ARTIFACT_STATE_READY;
    ready += has_code ? 1 : 0;
    if (!has_code && code == ExitCode::kOk) {
      code = answer.artifact_state() == v1::ARTIFACT_STATE_COMPILING ? ExitCode::kOutOfTime : ExitCode::kNotFound;
    }
    if (session.json()) {
      session.Emit(AnswerJson(answer, one.query.policy));
    } else {
      table.Row({problem,
                 Word(answer.provenance()),
                 VariantText(answer.variant()),
                 {CodeText(answer), has_code ? Color::kGreen : Color::kYellow}});
    }
  }
  if (!table.empty()) session.Print(table);
  session.Note(absl::StrCat(
      ready, " of ", Counted(static_cast<int64_t>(wanted.size()), "problem"), " can be launched, after ",
      took < absl::Seconds(1) ? absl::StrFormat("%.2f s", absl::ToDoubleSeconds(took)) : DurationText(took)));
  return code;
}

absl::StatusOr<ExitCode> RunWarm(Session& session, const WarmArguments& arguments) {
  absl::Time until = absl::InfiniteFuture();
  const absl::Time begun = absl::Now();
  if (!arguments.max_time.empty()) {
    const auto max_time = ParseDuration("--max-time", arguments.max_time);
    if (!max_time.ok()) return max_time.status();
    until = begun + *max_time;
  }
  auto wanted = Read(session, arguments.problems);
  if (!wanted.ok()) return wanted.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  {
    Asking asking(**client, *wanted, until);
    const size_t step = std::max<size_t>(1, wanted->size() / 10);
    for (size_t done = 0, told = 0; done < wanted->size();) {
      done = asking.Await(done);
      if (done < told + step || done == wanted->size()) continue;
      told = done;
      session.Note(absl::StrCat(done, " of ", wanted->size(), " answered"));
    }
  }
  return Report(session, *wanted, absl::Now() - begun);
}

}  // namespace

Action AddWarm(CLI::App& app) {
  auto arguments = std::make_shared<WarmArguments>();
  app.add_option("problems", arguments->problems,
                 "Problems such as b2.h8.q512.d64.f16, - for those on standard input, and files that have a sweep's "
                 "plan (lists and products of shapes)")
      ->required();
  app.add_option("--max-time", arguments->max_time, "Stop waiting after this long, such as 10m; default: no limit");
  return [arguments](Session& session) { return RunWarm(session, *arguments); };
}

}  // namespace attune::cli
