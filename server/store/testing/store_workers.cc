// Two holders that take jobs from each other: what store_durability_test.cc kills. Each line of its output is something
// that the store has acknowledged, or refused:
//   created JOB | leased JOB EPOCH | trial TRIAL JOB EPOCH | promoted INCUMBENT | ended JOB EPOCH | refused JOB EPOCH
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/store.h"

namespace attune::store {
namespace {

void Say(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(STDOUT_FILENO, whole.data(), whole.size()) < 0) _exit(2);
}

// Its lease is short, and it now and then stands still for longer: the other one takes its job then.
class Worker {
 public:
  Worker(Store& store, const std::string& name) : store_(store), name_(name), random_(std::random_device()()) {}

  void Run() {
    while (true) {
      const absl::StatusOr<std::vector<std::string>> jobs = store_.queue().Leasable(name_);
      if (!jobs.ok()) return;
      if (jobs->size() < 3) Create();
      if (!jobs->empty()) Work((*jobs)[random_() % jobs->size()]);
    }
  }

 private:
  void Create() {
    Job job;
    job.name = absl::StrCat("operations/", name_, "-", random_());
    job.request = "request";
    job.identity = job.name;
    job.request_id = job.name;
    job.operation.set_name(job.name);
    if (store_.queue().Create(job, {}).ok()) Say(absl::StrCat("created ", job.name));
  }

  void Work(const std::string& job) {
    const auto leased = store_.queue().Lease(job, name_, absl::Milliseconds(1 + random_() % 4));
    if (!leased.ok() || !leased->has_value()) return;
    fence_ = {job, (*leased)->epoch};
    Say(absl::StrCat("leased ", job, " ", fence_.epoch));
    v1::Operation operation = (*leased)->operation;
    for (uint64_t trials = random_() % 4; trials > 0; --trials) {
      if (random_() % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 10));
      if (!Append() || !Told(store_.queue().Update(fence_, operation))) return;
    }
    if (random_() % 8 == 0) {
      Told(store_.queue().Requeue(fence_));
      return;
    }
    operation.set_done(true);
    operation.set_title(absl::StrCat(fence_.epoch));
    if (Told(store_.queue().Finish(fence_, operation))) Say(absl::StrCat("ended ", job, " ", fence_.epoch));
  }

  bool Append() {
    v1::Trial trial;
    trial.set_problem_text("b1.h1.q128.d64.f16");
    trial.set_device_id("cuda:0");
    trial.mutable_variant()->set_family("attention_simt");
    trial.mutable_variant()->set_text("attention_simt:BLOCK_M=64");
    trial.set_policy(v1::POLICY_HOT);
    trial.set_verdict(v1::VERDICT_OK);
    trial.mutable_timing()->set_median_us(40);
    trial.set_job(fence_.job);
    trial.set_detail(absl::StrCat(fence_.epoch));
    const JobWrite write = NewWrite(fence_);
    const absl::StatusOr<std::string> name = store_.AppendTrial(trial, write);
    if (!Told(name.status())) return false;
    Say(absl::StrCat("trial ", *name, " ", fence_.job, " ", fence_.epoch));
    // As if the answer had been lost.
    const absl::StatusOr<std::string> again = store_.AppendTrial(trial, write);
    if (!Told(again.status())) return false;
    if (*again != *name) _exit(3);
    return Promote(*name);
  }

  bool Promote(const std::string& trial) {
    v1::Incumbent incumbent;
    incumbent.mutable_trial()->set_name(trial);
    incumbent.set_job(fence_.job);
    const auto served = store_.ListIncumbents({}, 1, "");
    if (!served.ok()) return false;
    const absl::StatusOr<v1::Incumbent> promoted =
        store_.Promote(incumbent, served->items.empty() ? "" : served->items[0].name(), NewWrite(fence_));
    if (promoted.ok()) Say(absl::StrCat("promoted ", promoted->name()));
    return !IsStale(promoted.status()) || Told(promoted.status());
  }

  // Whether the write was acknowledged.
  bool Told(const absl::Status& status) const {
    if (IsStale(status)) Say(absl::StrCat("refused ", fence_.job, " ", fence_.epoch));
    return status.ok();
  }

  Store& store_;
  const std::string name_;
  std::mt19937_64 random_;
  Fence fence_;
};

int Run(const std::string& directory) {
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory});
  if (!store.ok()) {
    const absl::string_view message = store.status().message();
    return write(STDERR_FILENO, message.data(), message.size()) < 0 ? 2 : 1;
  }
  std::vector<std::thread> threads;
  for (const char* name : {"one", "two"}) {
    threads.emplace_back([&store, name] { Worker(**store, name).Run(); });
  }
  for (std::thread& thread : threads) thread.join();
  return 1;
}

}  // namespace
}  // namespace attune::store

int main(int argc, char** argv) { return argc == 2 ? attune::store::Run(argv[1]) : 2; }
