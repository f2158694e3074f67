// Calls that once filled the daemon's memory, held its threads or broke its answers for others, against a running
// daemon: each must end with the status it should, quickly, while another caller is served. Prints a line a call;
// ends with 1 when one ended otherwise or the memory grew beyond its bound.
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/load/daemon_watch.h"

ABSL_FLAG(std::string, server, "localhost:7411", "address");
ABSL_FLAG(int, pid, 0, "of the daemon");
ABSL_FLAG(double, most_mib, 200, "of the daemon's memory, ever; more is a failure");

namespace attune {
namespace {

using Code = grpc::StatusCode;
using Stub = v1::AttuneService::Stub;

class Attack {
 public:
  int Run() {
    grpc::ChannelArguments stock;  // a client with default limits: answers above 4 MiB are errors
    stub_ = v1::AttuneService::NewStub(
        grpc::CreateCustomChannel(absl::GetFlag(FLAGS_server), grpc::InsecureChannelCredentials(), stock));
    *problem_.mutable_problem() = ToProto(*ParseProblem("b1.h1.q16.d64.f16"));
    Bystander bystander(absl::GetFlag(FLAGS_server));
    Padding();
    Sweeps();
    Preflights();
    Baselines();
    LongFields();
    RequestIds();
    Durations();
    HugeProblem();
    Unreadable();
    bystander.Stop();
    bystander.Print();
    const pid_t pid = absl::GetFlag(FLAGS_pid);
    const double most = MemoryMib(pid, "VmHWM");
    std::printf("daemon: %.1f MiB resident, at most %.1f MiB\n", MemoryMib(pid, "VmRSS"), most);
    if (most > absl::GetFlag(FLAGS_most_mib) || most == 0 || bystander.failed() > 0) ++failed_;
    std::printf(failed_ == 0 ? "fine\n" : "FAILED: %d\n", failed_.load());
    return failed_ == 0 ? 0 : 1;
  }

 private:
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    return (stub_.get()->*method)(&context, request, response);
  }

  template <typename Request, typename Response>
  Response Expect(const std::string& what, std::vector<Code> codes,
                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request) {
    Response response;
    const absl::Time begin = absl::Now();
    const grpc::Status status = Call(method, request, &response);
    const bool as_expected = std::find(codes.begin(), codes.end(), status.error_code()) != codes.end();
    if (!as_expected) ++failed_;
    std::printf("%s%s: status %d, %.2f s, %zu bytes, daemon %.0f MiB %s\n", as_expected ? "" : "WRONG ", what.c_str(),
                status.error_code(), absl::ToDoubleSeconds(absl::Now() - begin), response.ByteSizeLong(),
                MemoryMib(absl::GetFlag(FLAGS_pid), "VmRSS"), status.error_message().substr(0, 160).c_str());
    return response;
  }

  // Requests that differ only in a field nobody knows must not be kept one by one.
  void Padding() {
    for (const size_t size : {size_t{100}, size_t{500}, size_t{100'000}, size_t{8} << 20}) {
      const int count = size < 1000 ? 2000 : 50;
      int answered = 0;
      for (int i = 0; i < count; ++i) {
        v1::GetBestRequest request = problem_;
        request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
            99, absl::StrCat(i, std::string(size, 'x')));
        v1::GetBestResponse response;
        answered += Call(&Stub::GetBest, request, &response).ok() ? 1 : 0;
      }
      std::printf("%d GetBest with %zu bytes of padding: %d answered, daemon %.0f MiB\n", count, size, answered,
                  MemoryMib(absl::GetFlag(FLAGS_pid), "VmRSS"));
    }
  }

  // 14 KB that ask for 10^7 problems, and as many as are allowed with one that is wrong behind them.
  void Sweeps() {
    v1::SweepRequest request;
    for (int i = 0; i < 100; ++i) {
      v1::SweepProduct& product = *request.mutable_plan()->add_shapes()->mutable_product();
      for (int j = 1; j <= 100; ++j) product.add_batch(j);
      for (int j = 1; j <= 10; ++j) {
        product.add_heads_q(j);
        product.add_seq_q(j);
        product.add_head_dim(7 + j);
      }
    }
    request.mutable_plan()->add_shapes()->add_problem("nonsense");
    Expect("a sweep of 10^7 problems", {Code::INVALID_ARGUMENT}, &Stub::Sweep, request);
    request.mutable_plan()->mutable_shapes()->DeleteSubrange(0, 99);
    request.mutable_plan()->mutable_shapes(0)->mutable_product()->mutable_batch()->Truncate(99);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        v1::Operation response;
        if (Call(&Stub::Sweep, request, &response).error_code() != Code::INVALID_ARGUMENT) ++failed_;
      });
    }
    for (std::thread& thread : threads) thread.join();
    Expect("a sweep of 99,001 problems, the last wrong", {Code::INVALID_ARGUMENT}, &Stub::Sweep, request);
  }

  void Preflights() {
    v1::PreflightRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem("b4.h32.kvh8.q4096.d128.f16.causal"));
    request.set_device_id("profile:h200");
    request.set_list_variants(true);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        v1::PreflightResponse response;
        if (!Call(&Stub::Preflight, request, &response).ok()) ++failed_;
      });
    }
    for (std::thread& thread : threads) thread.join();
    Expect("Preflight after eight at once", {Code::OK}, &Stub::Preflight, request);
  }

  void Baselines() {
    const auto record = [&](const std::string& what, std::vector<Code> codes, auto set) {
      v1::RecordBaselineRequest request;
      *request.mutable_baseline()->mutable_problem() = problem_.problem();
      request.mutable_baseline()->set_contender("somebody");
      request.mutable_baseline()->set_median_us(5);
      set(*request.mutable_baseline());
      Expect("a baseline with " + what, std::move(codes), &Stub::RecordBaseline, request);
    };
    record("a note of 3 MiB", {Code::INVALID_ARGUMENT}, [](auto& b) { b.set_note(std::string(3 << 20, 'n')); });
    record("a note of 5 MiB", {Code::RESOURCE_EXHAUSTED}, [](auto& b) { b.set_note(std::string(5 << 20, 'n')); });
    record("a contender of 1 MiB", {Code::INVALID_ARGUMENT},
           [](auto& b) { b.set_contender(std::string(1 << 20, 'c')); });
    record("a device of 1 MiB", {Code::INVALID_ARGUMENT}, [](auto& b) { b.set_device_id(std::string(1 << 20, 'd')); });
    record("NaN", {Code::INVALID_ARGUMENT}, [](auto& b) { b.set_low_us(std::numeric_limits<double>::quiet_NaN()); });
    record("-infinity", {Code::INVALID_ARGUMENT},
           [](auto& b) { b.set_high_us(-std::numeric_limits<double>::infinity()); });
    record("1e308 us", {Code::INVALID_ARGUMENT}, [](auto& b) { b.set_median_us(1e308); });
    record("a time after the year 9999", {Code::INVALID_ARGUMENT}, [](auto& b) {
      b.mutable_record_time()->set_seconds(int64_t{1} << 62);
      b.mutable_record_time()->set_nanos(-5);
    });
    record("escapes", {Code::OK}, [](auto& b) { b.set_contender("\x1b]0;pwned\x07\x1b[31mred"); });
    for (int i = 0; i < 500; ++i) {
      v1::RecordBaselineRequest request;
      *request.mutable_baseline()->mutable_problem() = problem_.problem();
      request.mutable_baseline()->set_contender(absl::StrCat("contender ", i));
      request.mutable_baseline()->set_note(std::string(1024, 'n'));
      request.mutable_baseline()->set_median_us(5);
      v1::Baseline response;
      if (!Call(&Stub::RecordBaseline, request, &response).ok()) ++failed_;
    }
    Expect("GetBest after 500 baselines with full notes", {Code::OK, Code::NOT_FOUND}, &Stub::GetBest, problem_);
  }

  void LongFields() {
    const std::string megabyte(1 << 20, 't');
    v1::ListTrialsRequest list;
    list.mutable_filter()->set_problem(megabyte);
    Expect("a problem text of 1 MiB", {Code::INVALID_ARGUMENT}, &Stub::ListTrials, list);
    list.Clear();
    for (int i = 0; i < 1'000'000; ++i) list.mutable_filter()->add_verdicts(v1::VERDICT_OK);
    Expect("10^6 verdicts", {Code::INVALID_ARGUMENT}, &Stub::ListTrials, list);
    v1::GetBestRequest best = problem_;
    for (int i = 0; i < 1'000'000; ++i) best.add_acceptable(v1::PROVENANCE_EXACT);
    Expect("10^6 acceptable provenances", {Code::INVALID_ARGUMENT}, &Stub::GetBest, best);
    best = problem_;
    best.set_device_id(megabyte);
    Expect("a device of 1 MiB", {Code::INVALID_ARGUMENT}, &Stub::GetBest, best);
    v1::EvaluateVariantRequest evaluate;
    *evaluate.mutable_problem() = problem_.problem();
    evaluate.mutable_variant()->set_text("attention_opencl:" + megabyte);
    Expect("a variant of 1 MiB", {Code::INVALID_ARGUMENT}, &Stub::EvaluateVariant, evaluate);
    v1::TuneRequest tune;
    *tune.mutable_problem() = problem_.problem();
    for (int i = 0; i < 100'000; ++i) tune.add_families("attention_opencl");
    Expect("10^5 families", {Code::INVALID_ARGUMENT}, &Stub::Tune, tune);
    v1::RollBackRequest roll_back;
    *roll_back.mutable_problem() = problem_.problem();
    roll_back.set_why(megabyte);
    Expect("a reason of 1 MiB", {Code::INVALID_ARGUMENT}, &Stub::RollBack, roll_back);
    v1::GetTrialRequest trial;
    trial.set_name(megabyte);
    Expect("a trial's name of 1 MiB", {Code::INVALID_ARGUMENT}, &Stub::GetTrial, trial);
    trial.set_name(std::string(30 << 20, 't'));
    Expect("a trial's name of 30 MiB", {Code::RESOURCE_EXHAUSTED}, &Stub::GetTrial, trial);
  }

  void RequestIds() {
    v1::TuneRequest tune;
    *tune.mutable_problem() = problem_.problem();
    tune.set_request_id("nightly");
    tune.mutable_strategy()->set_max_trials(1);
    tune.set_background(true);
    const v1::Operation first = Expect("a tuning", {Code::OK}, &Stub::Tune, tune);
    v1::SweepRequest sweep;
    sweep.set_request_id("nightly");
    sweep.mutable_plan()->add_shapes()->add_problem("b1.h1.q16.d64.f16");
    Expect("a sweep under its request_id", {Code::ALREADY_EXISTS}, &Stub::Sweep, sweep);
    Cancel(first);
  }

  void Durations() {
    const auto tune = [&](int64_t seconds, int32_t nanos, std::vector<Code> codes) {
      v1::TuneRequest request;
      *request.mutable_problem() = problem_.problem();
      request.set_background(true);
      request.mutable_strategy()->set_max_trials(1);
      request.mutable_strategy()->mutable_max_time()->set_seconds(seconds);
      request.mutable_strategy()->mutable_max_time()->set_nanos(nanos);
      Cancel(
          Expect(absl::StrCat("a tuning of ", seconds, " s ", nanos, " ns"), std::move(codes), &Stub::Tune, request));
    };
    tune(std::numeric_limits<int64_t>::min(), 0, {Code::INVALID_ARGUMENT});
    tune(int64_t{1} << 62, 0, {Code::INVALID_ARGUMENT});
    tune(-1, 0, {Code::INVALID_ARGUMENT});
    tune(1, -5, {Code::INVALID_ARGUMENT});
    tune(5, std::numeric_limits<int32_t>::max(), {Code::INVALID_ARGUMENT});
    tune(9223372037, 0, {Code::OK});
    tune(315'576'000'000, 999'999'999, {Code::OK});
  }

  // 10^12 elements: no host has the memory.
  void HugeProblem() {
    v1::TuneRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem("b65536.h1.q16384.d512.f16"));
    Expect("a problem of 10^12 elements", {Code::FAILED_PRECONDITION}, &Stub::Tune, request);
  }

  // Text that is not UTF-8; the daemon's parser complains of each.
  void Unreadable() {
    v1::GetTrialRequest request;
    request.set_name("\xff\xfe");
    for (int i = 0; i < 1000; ++i) {
      v1::Trial response;
      if (Call(&Stub::GetTrial, request, &response).error_code() != Code::INVALID_ARGUMENT) ++failed_;
    }
    Expect("a trial's name that is not UTF-8", {Code::INVALID_ARGUMENT}, &Stub::GetTrial, request);
  }

  void Cancel(const v1::Operation& operation) {
    if (operation.name().empty()) return;
    v1::CancelOperationRequest request;
    request.set_name(operation.name());
    v1::Operation response;
    if (!Call(&Stub::CancelOperation, request, &response).ok()) ++failed_;
  }

  std::unique_ptr<Stub> stub_;
  v1::GetBestRequest problem_;
  std::atomic<int> failed_ = 0;
};

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  google::protobuf::SetLogHandler(nullptr);  // it knows what it sends
  return attune::Attack().Run();
}
