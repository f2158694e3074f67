// Fills a data directory as months of tuning would: trials of many variants over many problems, each problem with an
// incumbent. Every field that a real trial has is set, with plausible sizes.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "proto/attune/problem.h"
#include "server/base/sha256.h"
#include "server/store/store.h"
#include "tests/load/filled.h"

ABSL_FLAG(std::string, data_dir, "", "directory to fill; made when missing");
ABSL_FLAG(int, trials, 100000, "trials in all");
ABSL_FLAG(int, problems, 100, "problems they are spread over");
ABSL_FLAG(int, threads, 64, "that write, so that many trials are one commit");

namespace attune {
namespace {

v1::Trial MakeTrial(const Problem& problem, int number) {
  v1::Trial trial;
  *trial.mutable_problem() = ToProto(problem);
  trial.set_problem_text(ToText(problem));
  trial.set_device_id(FilledDevice().id());
  trial.set_policy(v1::POLICY_HOT);
  trial.set_verdict(v1::VERDICT_OK);
  v1::Variant& variant = *trial.mutable_variant();
  variant.set_family("attention_wmma");
  const char* const names[] = {"BLOCK_M", "BLOCK_N", "WARPS",    "MMA",       "CP_ASYNC_STAGES", "SWIZZLE",
                               "VEC",     "ACC",     "MIN_CTAS", "KV_SPLITS", "PERSISTENT"};
  std::string text = "attention_wmma:";
  for (const char* name : names) {
    v1::ParameterValue& value = *variant.add_parameters();
    value.set_name(name);
    value.set_value(name == names[0] ? number : 4);
    absl::StrAppend(&text, text.back() == ':' ? "" : ",", name, "=", value.value());
  }
  variant.set_text(text);
  v1::LaunchRecipe& recipe = *trial.mutable_recipe();
  for (int launch = 0; launch < 2; ++launch) {
    v1::KernelLaunch& to = *recipe.add_launches();
    to.set_entry(launch == 0 ? "attention_forward" : "combine");
    to.mutable_grid()->set_x(64);
    to.mutable_block()->set_x(128);
    to.set_dynamic_shared_bytes(32768);
    for (int i = 0; i < 24; ++i) to.add_args()->set_i64(1 << i);
  }
  trial.mutable_timing()->set_median_us(10 + number % 977);
  trial.mutable_timing()->set_low_us(9.9 + number % 977);
  trial.mutable_timing()->set_high_us(10.1 + number % 977);
  trial.mutable_timing()->set_samples(20);
  trial.mutable_timing()->set_settled(true);
  trial.mutable_accuracy()->set_max_abs_error(2e-4);
  trial.mutable_resources()->set_registers(128);
  trial.mutable_geometry()->set_ctas(64);
  trial.mutable_geometry()->set_sm_count(132);
  v1::Dependencies& dependencies = *trial.mutable_dependencies();
  dependencies.set_source_hash(Sha256("source"));
  dependencies.set_toolchain("nvrtc 13.0");
  dependencies.set_driver(FilledDevice().driver());
  dependencies.set_device_fingerprint(FilledDevice().fingerprint());
  trial.set_artifact_sha256(Sha256(text));
  trial.set_job("operations/load");
  *trial.mutable_finish_time() = google::protobuf::util::TimeUtil::GetCurrentTime();
  return trial;
}

// Its trials, the first of which is its incumbent.
absl::Status FillProblem(store::Store& store, const Problem& problem, int trials) {
  v1::Trial best;
  for (int i = 0; i < trials; ++i) {
    v1::Trial trial = MakeTrial(problem, i);
    auto name = store.AppendTrial(trial, {});
    if (!name.ok()) return name.status();
    if (i == 0) {
      trial.set_name(*name);
      best = trial;
    }
  }
  v1::Incumbent incumbent;
  *incumbent.mutable_problem() = best.problem();
  incumbent.set_problem_text(best.problem_text());
  incumbent.set_device_id(best.device_id());
  incumbent.set_policy(best.policy());
  *incumbent.mutable_trial() = best;
  incumbent.set_job("operations/load");
  incumbent.set_why("first");
  return store.Promote(incumbent, "", {}).status();
}

absl::Status Fill() {
  auto store = store::OpenSqliteStore({.directory = absl::GetFlag(FLAGS_data_dir)});
  if (!store.ok()) return store.status();
  const int problems = absl::GetFlag(FLAGS_problems);
  const int each = absl::GetFlag(FLAGS_trials) / problems;
  std::atomic<int> next = 0;
  std::mutex mutex;
  absl::Status first_error;
  const auto fill = [&] {
    for (int p = next++; p < problems; p = next++) {
      const absl::Status filled = FillProblem(**store, FilledProblem(p), each);
      const std::lock_guard<std::mutex> lock(mutex);
      first_error.Update(filled);
      if (!first_error.ok()) return;
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < absl::GetFlag(FLAGS_threads); ++i) threads.emplace_back(fill);
  threads.clear();  // joined
  return first_error;
}

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  if (absl::GetFlag(FLAGS_data_dir).empty()) {
    std::fprintf(stderr, "fill_store: --data_dir is needed\n");
    return 2;
  }
  if (const absl::Status status = attune::Fill(); !status.ok()) {
    std::fprintf(stderr, "fill_store: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
