// What counting one look-up takes: the clock twice, its beginning, its end with its time, and its provenance, by one
// thread and by several that count the same method. Prints nanoseconds a look-up.
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "server/base/clock.h"
#include "server/metrics/answers.h"
#include "server/metrics/calls.h"

int main() {
  constexpr int kCalls = 2'000'000;
  attune::metrics::Calls calls(std::vector<attune::metrics::CallMethod>{{"attune.v1.AttuneService", "GetBest"}});
  attune::metrics::Answers answers;
  attune::v1::Problem problem;
  problem.set_dtype(attune::v1::DTYPE_F16);
  const attune::metrics::AnswerKind kind = answers.Of(problem, attune::v1::PROVENANCE_NEAREST);
  const auto count = [&] {
    for (int i = 0; i < kCalls; ++i) {
      const absl::Duration begun = attune::SteadyNow();
      calls.Begun(0);
      kind.Count();
      calls.Ended(0, 0, attune::SteadyNow() - begun);
    }
  };
  for (const int threads : {1, 2, 4}) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) all.emplace_back(count);
    for (std::thread& thread : all) thread.join();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    std::printf("%d threads: %.0f ns a look-up counted\n", threads, took.count() / kCalls / threads);
  }
  return 0;
}
