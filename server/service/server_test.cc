#include "server/service/server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <semaphore>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "server/service/attune_service.h"
#include "server/service/errors.h"
#include "server/store/testing/fake_store.h"

namespace attune::service {
namespace {

using ::testing::HasSubstr;

// Knows one operation, which goes through the states it was given.
class OneOperationTuner : public jobs::Tuner {
 public:
  absl::Status Resume() override { return absl::OkStatus(); }
  absl::StatusOr<v1::Operation> Tune(const v1::TuneRequest&, const jobs::Asker&) override { return States().front(); }
  absl::StatusOr<v1::Operation> Sweep(const v1::SweepRequest&, const jobs::Asker&) override { return States().front(); }
  absl::StatusOr<v1::Operation> Evaluate(const v1::EvaluateVariantRequest&, const jobs::Asker&) override {
    return States().front();
  }
  absl::StatusOr<v1::Operation> Submit(const v1::SubmitRequest&, const jobs::Asker&) override {
    return States().front();
  }
  absl::StatusOr<v1::Operation> Profile(const v1::ProfileRequest& request, const jobs::Asker&) override {
    const std::lock_guard lock(mutex_);
    last_profile_ = request;
    return states_.front();
  }
  absl::StatusOr<v1::Operation> Sanitize(const v1::SanitizeRequest&, const jobs::Asker&) override {
    return States().front();
  }
  absl::StatusOr<v1::Operation> GetOperation(absl::string_view name) override {
    if (name != "operations/1") return absl::NotFoundError(absl::StrCat("no operation '", name, "'"));
    return States().back();
  }
  absl::StatusOr<v1::Operation> Cancel(absl::string_view name) override {
    if (on_cancel) on_cancel();
    return GetOperation(name);
  }
  bool IsIdle(absl::string_view) override { return true; }
  absl::StatusOr<std::function<void()>> Watch(absl::string_view name, Watcher watcher) override {
    if (auto found = GetOperation(name); !found.ok()) return found.status();
    for (const v1::Operation& state : States()) watcher(state);
    return std::function<void()>([this] { ++unsubscribed; });
  }
  void Drain(absl::Duration) override {}

  void SetStates(std::vector<v1::Operation> states) {
    const std::lock_guard lock(mutex_);
    states_ = std::move(states);
  }

  v1::ProfileRequest last_profile() {
    const std::lock_guard lock(mutex_);
    return last_profile_;
  }

  std::atomic<int> unsubscribed{0};
  std::function<void()> on_cancel;  // called by each Cancel; set before the first

 private:
  std::vector<v1::Operation> States() {
    const std::lock_guard lock(mutex_);
    return states_;
  }

  std::mutex mutex_;
  std::vector<v1::Operation> states_;
  v1::ProfileRequest last_profile_;
};

// Answers every look-up with its own question.
class EchoResults : public catalog::Results {
 public:
  absl::Status Reload() override { return absl::OkStatus(); }
  using catalog::Results::GetBest;
  absl::StatusOr<v1::GetBestResponse> GetBest(const v1::GetBestRequest& request, std::string* awaited) override {
    ++asked;
    v1::GetBestResponse response;
    *response.mutable_problem() = request.problem();
    response.set_device_id(request.device_id());
    return response;
  }
  std::vector<space::Variant> Nearby(const Problem&, const v1::Device&, v1::Policy, size_t) const override {
    return {};
  }
  bool IsTuned(const catalog::ResultKey&) const override { return tuned; }
  uint64_t version() const override { return 0; }
  absl::StatusOr<std::optional<v1::Incumbent>> Served(const catalog::ResultKey&) override {
    if (on_served) on_served();
    return std::nullopt;
  }
  absl::StatusOr<v1::Incumbent> Promote(const v1::Incumbent& next, const std::optional<v1::Incumbent>&,
                                        const store::JobWrite&) override {
    return next;
  }
  absl::StatusOr<v1::Incumbent> RollBack(const catalog::ResultKey& key, absl::string_view why,
                                         absl::string_view to) override {
    v1::Incumbent incumbent = Of(key);
    incumbent.set_why(absl::StrCat(why, " to ", to));
    return incumbent;
  }
  absl::StatusOr<v1::Incumbent> Unpin(const catalog::ResultKey& key) override { return Of(key); }
  absl::StatusOr<v1::Baseline> RecordBaseline(const v1::Baseline& baseline) override { return baseline; }
  void TrialsAdded(const catalog::ResultKey&) override {}
  void Reread(const std::vector<catalog::ResultKey>&) override {}

  std::atomic<int> asked{0};
  std::atomic<bool> tuned{false};
  std::function<void()> on_served;  // called by each Served; set before the first

 private:
  static v1::Incumbent Of(const catalog::ResultKey& key) {
    v1::Incumbent incumbent;
    incumbent.set_problem_text(key.problem_text);
    incumbent.set_device_id(key.device_class);
    incumbent.set_policy(key.policy);
    return incumbent;
  }
};

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    v1::Operation running;
    running.set_name("operations/1");
    running.set_state(v1::Operation::STATE_RUNNING);
    v1::Operation done = running;
    done.set_state(v1::Operation::STATE_SUCCEEDED);
    done.set_done(true);
    tuner_.SetStates({running, done});
    ServiceOptions options;
    options.tuner = &tuner_;
    options.results = &results_;
    options.misses = &misses_;
    v1::Device& device = host_.devices.emplace_back();
    device.set_id("cuda:0");
    device.set_fingerprint("an L4");
    v1::BackendStatus& backend = host_.backends.emplace_back();
    backend.set_compiler("fakec 1.0");
    options.host = &host_;
    options.store = &store_;
    options.backups = &backups_;
    options.submissions = &submissions_;
    options.version = "test";
    options.warnings = {"the walls are low"};
    service_ = std::make_unique<AttuneServiceImpl>(std::move(options));
    auto server = Server::Start({"localhost:0"}, {service_.get()}, {.anonymous = access::Role::kAdmin});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::AttuneService::NewStub(
        grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials()));
  }
  void TearDown() override { server_->Shutdown(absl::Seconds(5)); }

  OneOperationTuner tuner_;
  EchoResults results_;
  catalog::Misses misses_{[this](const catalog::ResultKey& key) { return results_.IsTuned(key); }, /*most=*/1};
  store::FakeStore store_;
  catalog::Host host_;
  store::Backups backups_{nullptr, ""};
  submit::Submissions submissions_{store_, host_, ""};
  std::unique_ptr<AttuneServiceImpl> service_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::AttuneService::Stub> stub_;
};

TEST_F(ServerTest, PreflightWarnsOfTheHost) {
  v1::PreflightRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem("b1.h1.q8.d64.f16"));
  grpc::ClientContext context;
  v1::PreflightResponse preflight;
  ASSERT_TRUE(stub_->Preflight(&context, request, &preflight).ok());
  EXPECT_THAT(preflight.warnings(), ::testing::Contains("the walls are low"));
}

TEST_F(ServerTest, AProfileIsOfTheTrialThatTheRequestMeansOnACardOfItsClass) {
  host_.devices[0].set_backend(v1::BACKEND_CUDA);
  host_.backends[0].set_backend(v1::BACKEND_CUDA);
  host_.backends[0].set_available(true);
  v1::Trial trial;
  trial.set_problem_text("b1.h1.q8.d64.f16");
  trial.set_device_id("cuda:0");
  trial.set_policy(v1::POLICY_HOT);
  trial.set_verdict(v1::VERDICT_OK);
  trial.mutable_timing()->set_median_us(10);
  trial.mutable_variant()->set_family("tiles");
  trial.mutable_variant()->set_text("tiles:BLOCK=16");
  trial.mutable_dependencies()->set_device_fingerprint("an L4");
  trial.set_artifact_sha256("abc");
  trial.mutable_recipe()->add_launches()->set_entry("attention");
  v1::Incumbent served;
  served.mutable_trial()->set_name(store_.AppendTrial(trial, {}).value());
  ASSERT_TRUE(store_.Promote(served, "", {}).ok());
  v1::ProfileRequest request;
  *request.mutable_code()->mutable_problem() = ToProto(*ParseProblem("b1.h1.q8.d64.f16"));
  const auto profile = [&] {
    grpc::ClientContext context;
    v1::Operation operation;
    return stub_->Profile(&context, request, &operation);
  };
  const grpc::Status asked = profile();
  ASSERT_TRUE(asked.ok()) << asked.error_message();
  EXPECT_EQ(tuner_.last_profile().code().trial(), "trials/1");
  EXPECT_FALSE(tuner_.last_profile().code().has_problem());
  EXPECT_EQ(tuner_.last_profile().device_id(), "cuda:0");
  request.mutable_code()->set_submission("submissions/9");
  EXPECT_EQ(profile().error_code(), grpc::StatusCode::NOT_FOUND);
  request.mutable_code()->set_trial("trials/1");
  EXPECT_EQ(profile().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, ExplainsASubmissionsTrial) {
  v1::Trial trial;
  trial.set_problem_text("b1.h1.q8.d64.f16");
  trial.set_device_id("cuda:0");
  trial.set_policy(v1::POLICY_HOT);
  trial.set_verdict(v1::VERDICT_COMPILE_ERROR);
  trial.mutable_variant()->set_family("submitted_1");
  trial.mutable_variant()->set_text("submitted_1:");
  const std::string name = store_.AppendTrial(trial, {}).value();
  v1::Submission submission;
  submission.set_content_hash("4f0c");
  submission.set_family("submitted_1");
  submission.set_principal("token:ada");
  submission.set_operation("operations/1");
  submission.set_state(v1::Submission::STATE_PRIVATE);
  submission.add_files()->set_path("attention.cl");
  for (const char* problem : {"b1.h1.q8.d64.f16", "b1.h1.q16.d64.f16"}) {
    submission.mutable_result()->add_rows()->set_problem(problem);
  }
  submission.mutable_result()->mutable_rows(0)->mutable_trial()->set_name(name);
  v1::ExplainRequest request;
  request.set_submission(store_.RecordSubmission(submission, {})->name());
  v1::ExplainResponse response;
  const auto explain = [&] {
    grpc::ClientContext context;
    return stub_->Explain(&context, request, &response);
  };
  EXPECT_THAT(explain().error_message(), HasSubstr("submission_problem is empty, and submissions/1 is of 2 problems"));
  *request.mutable_submission_problem() = ToProto(*ParseProblem("b1.h1.q8.d64.f16"));
  const grpc::Status explained = explain();
  ASSERT_TRUE(explained.ok()) << explained.error_message();
  EXPECT_EQ(response.trial().name(), name);
  EXPECT_EQ(response.findings(0).bound(), v1::ExplainResponse::BOUND_NOT_OK);
  *request.mutable_submission_problem() = ToProto(*ParseProblem("b1.h1.q16.d64.f16"));
  EXPECT_EQ(explain().error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_submission("submissions/9");
  EXPECT_EQ(explain().error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_trial(name);
  EXPECT_EQ(explain().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "a trial has its own problem";
}

TEST_F(ServerTest, PlansSweepsAndRetriesTrialsAsTheyAreNormalised) {
  v1::SweepRequest sweep;
  sweep.mutable_plan()->add_shapes()->add_problem("b1.h1.q8.d64.f16");
  grpc::ClientContext planning;
  v1::PlanSweepResponse plan;
  ASSERT_TRUE(stub_->PlanSweep(&planning, sweep, &plan).ok());
  EXPECT_EQ(plan.device_id(), "cuda:0");
  v1::Trial crashed;
  crashed.set_problem_text("b1.h1.q8.d64.f16");
  crashed.set_device_id("cuda:0");
  crashed.set_policy(v1::POLICY_HOT);
  crashed.set_verdict(v1::VERDICT_CRASHED);
  crashed.mutable_variant()->set_family("tiles");
  crashed.mutable_variant()->set_text("tiles:BLOCK=16");
  ASSERT_TRUE(store_.AppendTrial(crashed, {}).ok());
  v1::RetryTrialsRequest retry;
  retry.mutable_filter()->add_verdicts(v1::VERDICT_CRASHED);
  retry.mutable_filter()->set_problem("h1.b1.q8.kv8.d64.f16");
  grpc::ClientContext retrying;
  v1::RetryTrialsResponse retried;
  ASSERT_TRUE(stub_->RetryTrials(&retrying, retry, &retried).ok());
  ASSERT_EQ(retried.problems_size(), 1);
  EXPECT_EQ(retried.problems(0), "b1.h1.q8.d64.f16");
}

TEST_F(ServerTest, WhoOnlyReadsDoesNotWaitForTheDiskOfThoseWhoWrite) {
  constexpr int kWriters = 8;
  std::promise<void> disk;
  std::counting_semaphore<> writing(0);
  tuner_.on_cancel = [&writing, written = disk.get_future().share()] {
    writing.release();
    written.wait();
  };
  std::vector<std::future<grpc::Status>> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(std::async(std::launch::async, [this] {
      grpc::ClientContext context;
      v1::CancelOperationRequest request;
      request.set_name("operations/1");
      v1::Operation response;
      return stub_->CancelOperation(&context, request, &response);
    }));
  }
  for (int i = 0; i < kWriters / 2; ++i) writing.acquire();  // as many as have threads
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::ListOperationsResponse response;
  EXPECT_TRUE(stub_->ListOperations(&context, v1::ListOperationsRequest(), &response).ok());
  disk.set_value();
  for (std::future<grpc::Status>& writer : writers) EXPECT_TRUE(writer.get().ok());
}

TEST_F(ServerTest, APlanEndsWhenItsCallerGoes) {
  constexpr int kProblems = 10'000;
  v1::SweepRequest request;
  v1::SweepProduct& product = *request.mutable_plan()->add_shapes()->mutable_product();
  for (int batch = 1; batch <= kProblems; ++batch) product.add_batch(batch);
  product.add_heads_q(1);
  product.add_seq_q(8);
  product.add_head_dim(64);
  std::atomic<int> planned = 0;
  absl::Notification begun;
  absl::Notification gone;
  results_.on_served = [&] {
    if (++planned == 1) begun.Notify();
    gone.WaitForNotification();
    absl::SleepFor(absl::Milliseconds(1));  // the server hears of it while there is much left to plan
  };
  grpc::ClientContext planning;
  std::thread caller([&] {
    v1::PlanSweepResponse plan;
    EXPECT_EQ(stub_->PlanSweep(&planning, request, &plan).error_code(), grpc::StatusCode::CANCELLED);
  });
  EXPECT_TRUE(begun.WaitForNotificationWithTimeout(absl::Seconds(60)));
  planning.TryCancel();
  caller.join();
  gone.Notify();
  v1::RetryTrialsRequest next;  // runs on the thread of plans, behind it
  next.mutable_filter()->add_verdicts(v1::VERDICT_CRASHED);
  grpc::ClientContext retrying;
  v1::RetryTrialsResponse retried;
  EXPECT_TRUE(stub_->RetryTrials(&retrying, next, &retried).ok());
  EXPECT_LT(planned, kProblems);
}

TEST_F(ServerTest, RollsBackAndUnpinsWhatTheNormalisedRequestNames) {
  v1::RollBackRequest back;
  *back.mutable_problem() = ToProto(*ParseProblem("b1.h1.q8.d64.f16"));
  back.set_why("wrong");
  back.set_to("incumbents/3");
  grpc::ClientContext rolling;
  v1::Incumbent served;
  ASSERT_TRUE(stub_->RollBack(&rolling, back, &served).ok());
  EXPECT_EQ(served.problem_text(), "b1.h1.q8.d64.f16");
  EXPECT_EQ(served.device_id(), "an L4") << "the class of the first device";
  EXPECT_EQ(served.policy(), v1::POLICY_HOT);
  EXPECT_EQ(served.why(), "wrong to incumbents/3");
  v1::UnpinRequest unpin;
  *unpin.mutable_problem() = back.problem();
  grpc::ClientContext unpinning;
  ASSERT_TRUE(stub_->Unpin(&unpinning, unpin, &served).ok());
  EXPECT_EQ(served.problem_text(), "b1.h1.q8.d64.f16");
}

TEST_F(ServerTest, NormalisesWhatItLooksUp) {
  v1::GetBestRequest request;
  request.mutable_problem()->set_batch(1);
  request.mutable_problem()->set_heads_q(2);
  request.mutable_problem()->set_seq_q(3);
  request.mutable_problem()->set_head_dim(64);
  for (int time = 0; time < 2; ++time) {  // the second is answered from what was kept
    grpc::ClientContext context;
    v1::GetBestResponse response;
    ASSERT_TRUE(stub_->GetBest(&context, request, &response).ok());
    EXPECT_EQ(ToText(*FromProto(response.problem())), "b1.h2.q3.d64.f16");
    EXPECT_EQ(response.device_id(), "cuda:0");
  }
  EXPECT_EQ(results_.asked, 1);
}

TEST_F(ServerTest, AnswersToPaddedRequestsAreNotKept) {
  v1::GetBestRequest plain;
  *plain.mutable_problem() = ToProto(*ParseProblem("b1.h2.q3.d64.f16"));
  v1::GetBestRequest padded = plain;
  padded.GetReflection()->MutableUnknownFields(&padded)->AddLengthDelimited(99, "padding");
  const auto ask = [this](const v1::GetBestRequest& request) {
    grpc::ClientContext context;
    v1::GetBestResponse response;
    EXPECT_TRUE(stub_->GetBest(&context, request, &response).ok());
  };
  for (int time = 0; time < 2; ++time) ask(plain);
  EXPECT_EQ(results_.asked, 1);
  for (int time = 0; time < 2; ++time) ask(padded);
  EXPECT_EQ(results_.asked, 3);
}

TEST_F(ServerTest, EveryCallForWhatNobodyTunedIsCountedAlsoWhatIsAnsweredFromKeptBytes) {
  const auto ask = [this](const char* problem) {
    v1::GetBestRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(problem));
    grpc::ClientContext context;
    v1::GetBestResponse response;
    EXPECT_TRUE(stub_->GetBest(&context, request, &response).ok());
  };
  const auto count = [this] {
    v1::ListMissesRequest request;
    request.set_device_id("cuda:0");
    grpc::ClientContext context;
    v1::ListMissesResponse response;
    EXPECT_TRUE(stub_->ListMisses(&context, request, &response).ok());
    return response.misses_size() == 0 ? 0 : response.misses(0).count();
  };
  for (int time = 0; time < 3; ++time) ask("b1.h2.q3.d64.f16");
  EXPECT_EQ(results_.asked, 1);
  EXPECT_EQ(count(), 3);
  ask("b1.h2.q4.d64.f16");  // there is room for one
  for (int time = 0; time < 2; ++time) ask("b1.h2.q3.d64.f16");
  EXPECT_EQ(count(), 2) << "it is remembered anew";
  results_.tuned = true;
  EXPECT_EQ(count(), 0);
}

TEST_F(ServerTest, AFieldBeyondItsLimitIsRefusedBeforeAnythingLooksAtIt) {
  v1::GetTrialRequest trial;  // there is no store
  trial.set_name(std::string(1 << 20, 't'));
  grpc::ClientContext context;
  v1::Trial response;
  const grpc::Status status = stub_->GetTrial(&context, trial, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "name has 1048576 bytes; allowed: at most 256");
  v1::WatchOperationRequest watch;
  watch.set_name(trial.name());
  grpc::ClientContext watching;
  auto reader = stub_->WatchOperation(&watching, watch);
  v1::Operation state;
  EXPECT_FALSE(reader->Read(&state));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::GetBestRequest best;
  *best.mutable_problem() = ToProto(*ParseProblem("b1.h2.q3.d64.f16"));
  best.set_device_id(std::string(257, 'd'));
  grpc::ClientContext asking;
  v1::GetBestResponse answer;
  EXPECT_EQ(stub_->GetBest(&asking, best, &answer).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(results_.asked, 0);
}

TEST_F(ServerTest, ARequestThatCannotBeReadIsAnInvalidArgument) {
  grpc::GenericStub generic(grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials()));
  const auto send = [&generic](const std::string& method, const std::string& bytes) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice slice(bytes);
    auto call =
        generic.PrepareUnaryCall(&context, "/attune.v1.AttuneService/" + method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  };
  for (const std::string method : {"GetTrial", "WatchOperation", "GetBest"}) {
    for (const std::string bytes : {"\x0a\x01\xff", "\x0a\x7f"}) {  // a text that is not UTF-8; a field cut short
      const grpc::Status status = send(method, bytes);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
      EXPECT_THAT(status.error_message(),
                  HasSubstr(absl::StrCat("the request is not an attune.v1.", method, "Request")));
      EXPECT_THAT(status.error_details(), HasSubstr("attune.dev"));
    }
  }
  EXPECT_EQ(send("NoSuchCall", "").error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(send("GetOperation", "\x0a\x0coperations/1").error_code(), grpc::StatusCode::OK);
}

TEST_F(ServerTest, ARequestIsNotReadBeyondItsLimit) {
  v1::GetTrialRequest request;
  request.set_name(std::string(5 << 20, 't'));
  grpc::ClientContext context;
  v1::Trial response;
  EXPECT_EQ(stub_->GetTrial(&context, request, &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ServerTest, AnArtifactIsFetchedAsideAndTheAnswerNotKept) {
  v1::GetBestRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem("b1.h2.q3.d64.f16"));
  request.set_include_artifact(true);
  for (int time = 0; time < 2; ++time) {
    grpc::ClientContext context;
    v1::GetBestResponse response;
    const grpc::Status status = stub_->GetBest(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.device_id(), "cuda:0");
  }
  EXPECT_EQ(results_.asked, 2);
}

TEST_F(ServerTest, ABadProblemIsAnErrorWithItsReason) {
  v1::GetBestRequest request;
  grpc::ClientContext context;
  v1::GetBestResponse response;
  const grpc::Status status = stub_->GetBest(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("batch is 0"));
  EXPECT_THAT(status.error_details(), HasSubstr("INVALID_PROBLEM"));
}

TEST_F(ServerTest, AWatchEndsWithTheDoneState) {
  v1::WatchOperationRequest request;
  request.set_name("operations/1");
  grpc::ClientContext context;
  auto reader = stub_->WatchOperation(&context, request);
  v1::Operation last;
  while (reader->Read(&last)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(last.done());
}

TEST_F(ServerTest, WatchingAnUnknownOperationFails) {
  v1::WatchOperationRequest request;
  request.set_name("operations/2");
  grpc::ClientContext context;
  auto reader = stub_->WatchOperation(&context, request);
  v1::Operation state;
  EXPECT_FALSE(reader->Read(&state));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServerTest, ACancelledWatchUnsubscribes) {
  v1::Operation endless;
  endless.set_name("operations/1");
  endless.set_state(v1::Operation::STATE_RUNNING);
  tuner_.SetStates({endless});
  v1::WatchOperationRequest request;
  request.set_name("operations/1");
  grpc::ClientContext context;
  auto reader = stub_->WatchOperation(&context, request);
  v1::Operation state;
  ASSERT_TRUE(reader->Read(&state));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (tuner_.unsubscribed == 0 && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_EQ(tuner_.unsubscribed, 1);
}

TEST_F(ServerTest, APortInUseIsNamed) {
  const std::string address = server_->addresses().front();
  const auto second = Server::Start({address}, {service_.get()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address));
}

TEST_F(ServerTest, AStaleSocketIsReplacedAndALiveOneIsNot) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/attune-server-test-", getpid(), ".sock");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(fd);  // nobody listens; the file stays

  auto first = Server::Start({absl::StrCat("unix:", path)}, {service_.get()});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Server::Start({absl::StrCat("unix:", path)}, {service_.get()});
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another process listens"));
  (*first)->Shutdown(absl::Seconds(1));
}

TEST_F(ServerTest, AFileThatIsNoSocketIsLeftAlone) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/attune-server-test-", getpid(), ".txt");
  std::ofstream(path) << "kept";
  const auto server = Server::Start({absl::StrCat("unix:", path)}, {service_.get()});
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("is not a socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace attune::service
