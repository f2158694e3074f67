// Appends trials for ever and prints each one's name once it is committed: what store_durability_test.cc kills.
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/store.h"

namespace attune::store {
namespace {

v1::Trial Trial(int thread, int64_t count) {
  v1::Trial trial;
  trial.set_problem_text("b1.h1.q128.d64.f16");
  trial.set_device_id("cuda:0");
  trial.mutable_variant()->set_family("attention_simt");
  trial.mutable_variant()->set_text(absl::StrCat("attention_simt:BLOCK_M=", count % 100));
  trial.set_policy(v1::POLICY_HOT);
  trial.set_verdict(v1::VERDICT_OK);
  trial.mutable_timing()->set_median_us(static_cast<double>(1 + count % 50));
  // Long, so that the log is checkpointed often, and of many pages, so that a torn one would show.
  trial.set_detail(std::string(static_cast<size_t>(20'000 + 1'000 * thread), static_cast<char>('a' + thread)));
  return trial;
}

int Run(const std::string& directory) {
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory});
  if (!store.ok()) {
    absl::string_view message = store.status().message();
    return write(STDERR_FILENO, message.data(), message.size()) < 0 ? 2 : 1;
  }
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&store, thread] {
      for (int64_t count = 0;; ++count) {
        absl::StatusOr<std::string> name = (*store)->AppendTrial(Trial(thread, count), {});
        if (!name.ok()) return;
        const std::string line = *name + "\n";
        if (write(STDOUT_FILENO, line.data(), line.size()) < 0) return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 1;
}

}  // namespace
}  // namespace attune::store

int main(int argc, char** argv) { return argc == 2 ? attune::store::Run(argv[1]) : 2; }
