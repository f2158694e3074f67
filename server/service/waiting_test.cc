// Look-ups that wait for code that is being compiled.
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "server/base/clock.h"
#include "server/catalog/misses.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/service/attune_service.h"
#include "server/service/server.h"
#include "server/store/testing/fake_store.h"
#include "server/supervisor/testing/fake_workers.h"
#include "server/trials/code_on_demand.h"

namespace attune::service {
namespace {

using ::testing::HasSubstr;

// A server that has tuned nothing.
class WaitingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pool_.Hold();
    results_ = *catalog::Results::Load(store_, host_, &supply_);
    ServiceOptions options;
    options.results = results_.get();
    options.supply = &supply_;
    options.misses = &misses_;
    options.store = &store_;
    options.backups = &backups_;
    options.host = &host_;
    service_ = std::make_unique<AttuneServiceImpl>(std::move(options));
    server_ = *Server::Start({"localhost:0"}, {service_.get()}, {.anonymous = access::Role::kAdmin});
    stub_ = v1::AttuneService::NewStub(
        grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials()));
  }
  void TearDown() override {
    supply_.Shutdown();
    server_->Shutdown(absl::Seconds(5));
  }

  grpc::Status Ask(absl::Duration wait, bool with_artifact, v1::GetBestResponse& response) {
    v1::GetBestRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem("b1.h1.q128.d64.f16"));
    request.set_include_artifact(with_artifact);
    if (wait > absl::ZeroDuration()) {
      request.mutable_wait()->set_seconds(wait / absl::Seconds(1));
      request.mutable_wait()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(wait) % 1'000'000'000));
    }
    grpc::ClientContext context;
    return stub_->GetBest(&context, request, &response);
  }
  v1::GetBestResponse Best(absl::Duration wait, bool with_artifact = false) {
    v1::GetBestResponse response;
    const grpc::Status status = Ask(wait, with_artifact, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  store::FakeStore store_;
  supervisor::FakeCompilePool pool_;
  catalog::Host host_ = catalog::FakeHost();
  store::Backups backups_{nullptr, ""};
  trials::CodeOnDemand supply_{store_, pool_, host_};
  std::unique_ptr<catalog::Results> results_;
  catalog::Misses misses_{[this](const catalog::ResultKey& key) { return results_->IsTuned(key); }};
  std::unique_ptr<AttuneServiceImpl> service_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::AttuneService::Stub> stub_;
};

TEST_F(WaitingTest, WhoWaitsGetsTheCodeAndNobodyElseWaits) {
  EXPECT_EQ(Best(absl::ZeroDuration()).artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  EXPECT_EQ(Best(absl::ZeroDuration(), /*with_artifact=*/true).artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  v1::GetBestResponse waited;
  v1::GetBestResponse waited_for_bytes;
  std::thread asking([&] { waited = Best(absl::Seconds(60)); });
  std::thread asking_for_bytes([&] { waited_for_bytes = Best(absl::Seconds(60), /*with_artifact=*/true); });
  EXPECT_EQ(Best(absl::ZeroDuration()).artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  pool_.Go();
  asking.join();
  asking_for_bytes.join();
  EXPECT_EQ(waited.artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_FALSE(waited.artifact_sha256().empty());
  EXPECT_FALSE(waited_for_bytes.artifact().empty());
  EXPECT_EQ(Best(absl::ZeroDuration()).artifact_state(), v1::ARTIFACT_STATE_READY) << "the answer before is not kept";
}

TEST_F(WaitingTest, TheNextBestIsWaitedForInTurn) {
  pool_.Script([](const worker::v1::CompileRequest& request) {
    auto response = supervisor::FakeCompilePool::Plain(request);
    if (supervisor::FakeCompilePool::Has(request, "-DBLOCK=32")) response->set_verdict(v1::VERDICT_COMPILE_ERROR);
    return response;
  });
  pool_.Go();
  const v1::GetBestResponse best = Best(absl::Seconds(60));
  EXPECT_EQ(best.artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_THAT(best.variant().text(), HasSubstr("BLOCK=16"));
}

TEST_F(WaitingTest, EachCallWaitsAsLongAsItSays) {
  constexpr absl::Duration kWait = absl::Milliseconds(30);
  for (int i = 0; i < 2; ++i) {
    const absl::Duration begin = SteadyNow();
    EXPECT_EQ(Best(kWait).artifact_state(), v1::ARTIFACT_STATE_COMPILING);
    EXPECT_GE(SteadyNow() - begin, kWait);
  }
}

TEST_F(WaitingTest, ACallThatWaitsIsCountedOnce) {
  EXPECT_EQ(Best(absl::Milliseconds(5)).artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  EXPECT_EQ(misses_.List("", 10, "")->items.at(0).artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  std::thread asking([&] { Best(absl::Seconds(60)); });
  pool_.Go();
  asking.join();
  const auto page = misses_.List("", 10, "");
  ASSERT_EQ(page->items.size(), 1);
  EXPECT_EQ(page->items[0].count(), 2);
  EXPECT_EQ(page->items[0].artifact_state(), v1::ARTIFACT_STATE_READY) << "as it was answered last";
}

TEST_F(WaitingTest, LongerThanAllowedIsRefused) {
  v1::GetBestResponse response;
  const grpc::Status status = Ask(absl::Seconds(61), false, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("wait is 61 s; allowed: 0 to 60 s"));
  EXPECT_THAT(Ask(absl::Milliseconds(60500), false, response).error_message(), HasSubstr("wait is 60.5 s; allowed"));
}

}  // namespace
}  // namespace attune::service
