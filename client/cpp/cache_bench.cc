// What a cached answer costs: Client::GetBest for a problem it was asked before, from one thread and from several.
#include <benchmark/benchmark.h>

#include "client/cpp/client.h"
#include "client/testing/fake_attune.h"

namespace attune {
namespace {

void CachedAnswer(benchmark::State& state) {
  static testing::FakeAttune fake;
  static const testing::RunningServer server(&fake);
  static const std::unique_ptr<Client> client = [] {
    ClientOptions options;
    options.time_to_live = absl::InfiniteDuration();
    return *Client::Connect(server.address(), options);
  }();
  const BestQuery query = {.problem = *ParseProblem(testing::FakeAttune::kProblem), .device_id = "cuda:0"};
  if (!client->GetBest(query).ok()) state.SkipWithError("the server gave no answer");
  for (auto _ : state) benchmark::DoNotOptimize(client->GetBest(query));
}
BENCHMARK(CachedAnswer)->Threads(1)->Threads(2)->Threads(4);

}  // namespace
}  // namespace attune

BENCHMARK_MAIN();
