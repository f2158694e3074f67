// Throughput and latency of GetBest against Ping on the same server, in alternating rounds, so that whatever else the
// machine does falls on both alike.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attune/v1/service.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "proto/attune/problem.h"
#include "tests/load/filled.h"

ABSL_FLAG(std::string, server, "localhost:7411", "address");
ABSL_FLAG(std::string, problem, "b1.h8.q512.d64.f16", "what GetBest asks for");
ABSL_FLAG(int, problems, 0, "asks for so many of fill_store's problems in turn; 0: for --problem alone");
ABSL_FLAG(std::string, device, "cuda:0", "device id of the answers");
ABSL_FLAG(int, threads, 4, "client threads, each with one call in flight");
ABSL_FLAG(int, rounds, 10, "rounds of each method");
ABSL_FLAG(absl::Duration, round_time, absl::Seconds(1), "length of a round");
ABSL_FLAG(std::string, tls_ca, "", "PEM file with who signs the server's certificate; empty: in clear");
ABSL_FLAG(std::string, tls_cert, "", "PEM file with a certificate to show");
ABSL_FLAG(std::string, tls_key, "", "PEM file with its key");
ABSL_FLAG(std::string, token, "", "token to bring");
ABSL_FLAG(bool, first, false, "only wait for the server, ask once, and print the time from start to answer");

namespace attune {
namespace {

using Call = std::function<bool()>;

struct Round {
  double per_second = 0;
  std::vector<double> latencies_us;
};

// `make` is called once a thread, on it.
Round RunRound(const std::function<Call()>& make) {
  const int threads = absl::GetFlag(FLAGS_threads);
  const absl::Time end = absl::Now() + absl::GetFlag(FLAGS_round_time);
  std::vector<std::vector<double>> latencies(threads);
  std::vector<std::thread> workers;
  const absl::Time start = absl::Now();
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      const Call call = make();
      while (absl::Now() < end) {
        const auto before = std::chrono::steady_clock::now();
        if (!call()) std::exit(1);
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - before;
        latencies[i].push_back(took.count());
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  Round round;
  for (auto& part : latencies) round.latencies_us.insert(round.latencies_us.end(), part.begin(), part.end());
  round.per_second = static_cast<double>(round.latencies_us.size()) / absl::ToDoubleSeconds(absl::Now() - start);
  return round;
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

bool Checked(const grpc::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "query_load: %s\n", status.error_message().c_str());
  return status.ok();
}

// Empty without a name.
std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::shared_ptr<grpc::ChannelCredentials> Credentials() {
  if (absl::GetFlag(FLAGS_tls_ca).empty()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({ReadFile(absl::GetFlag(FLAGS_tls_ca)), ReadFile(absl::GetFlag(FLAGS_tls_key)),
                               ReadFile(absl::GetFlag(FLAGS_tls_cert))});
}

void BringToken(grpc::ClientContext& context) {
  const std::string token = absl::GetFlag(FLAGS_token);
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

std::vector<v1::GetBestRequest> Requests() {
  std::vector<Problem> problems;
  for (int i = 0; i < absl::GetFlag(FLAGS_problems); ++i) problems.push_back(FilledProblem(i));
  if (problems.empty()) problems.push_back(*ParseProblem(absl::GetFlag(FLAGS_problem)));
  std::vector<v1::GetBestRequest> requests;
  for (const Problem& problem : problems) {
    v1::GetBestRequest& request = requests.emplace_back();
    *request.mutable_problem() = ToProto(problem);
    request.set_device_id(absl::GetFlag(FLAGS_device));
  }
  return requests;
}

int Main() {
  auto channel = grpc::CreateChannel(absl::GetFlag(FLAGS_server), Credentials());
  const auto stub = v1::AttuneService::NewStub(channel);
  const std::vector<v1::GetBestRequest> requests = Requests();
  std::atomic<size_t> asked = 0;
  const Call ask = [&] {
    const v1::GetBestRequest& request = requests[asked++ % requests.size()];
    grpc::ClientContext context;
    BringToken(context);
    context.set_wait_for_ready(true);
    v1::GetBestResponse response;
    return Checked(stub->GetBest(&context, request, &response)) && !response.variant().text().empty();
  };
  if (absl::GetFlag(FLAGS_first)) return ask() ? 0 : 1;

  const std::function<Call()> get_best = [&]() -> Call { return ask; };
  const std::function<Call()> ping = [&]() -> Call {
    return [&] {
      grpc::ClientContext context;
      BringToken(context);
      v1::PingResponse response;
      return Checked(stub->Ping(&context, v1::PingRequest(), &response));
    };
  };
  RunRound(ping);
  RunRound(get_best);
  std::vector<double> ping_rates, best_rates, ratios, latencies;
  for (int i = 0; i < absl::GetFlag(FLAGS_rounds); ++i) {
    const Round floor = RunRound(ping);
    const Round best = RunRound(get_best);
    ping_rates.push_back(floor.per_second);
    best_rates.push_back(best.per_second);
    ratios.push_back(best.per_second / floor.per_second);
    latencies.insert(latencies.end(), best.latencies_us.begin(), best.latencies_us.end());
  }
  std::printf("threads %d, rounds %d of %s each\n", absl::GetFlag(FLAGS_threads), absl::GetFlag(FLAGS_rounds),
              absl::FormatDuration(absl::GetFlag(FLAGS_round_time)).c_str());
  std::printf("Ping     %.0f calls/s (median round)\n", Quantile(ping_rates, 0.5));
  std::printf("GetBest  %.0f calls/s (median round), ratio %.3f (rounds %.3f to %.3f)\n", Quantile(best_rates, 0.5),
              Quantile(ratios, 0.5), Quantile(ratios, 0), Quantile(ratios, 1));
  std::printf("GetBest latency  p50 %.0f us  p99 %.0f us  max %.0f us\n", Quantile(latencies, 0.5),
              Quantile(latencies, 0.99), Quantile(latencies, 1));
  return 0;
}

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return attune::Main();
}
