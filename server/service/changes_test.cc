// Calls that change what is served: the next look-up, though it was answered before, has the change.
#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "server/catalog/host.h"
#include "server/catalog/results.h"
#include "server/service/attune_service.h"
#include "server/service/server.h"
#include "server/store/testing/fake_store.h"

namespace attune::service {
namespace {

constexpr char kProblem[] = "b2.h8.q512.d64.f16";

// Two incumbents, one after the other, and a server that has given its answer.
class ChangesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    first_ = Promote("tiles:BLOCK=32", "", false);
    second_ = Promote("tiles:BLOCK=64", first_, true);
    host_.devices.emplace_back().set_id("cuda:0");
    auto results = catalog::Results::Load(store_, host_);
    ASSERT_TRUE(results.ok()) << results.status();
    results_ = *std::move(results);
    ServiceOptions options;
    options.results = results_.get();
    options.store = &store_;
    options.backups = &backups_;
    options.host = &host_;
    service_ = std::make_unique<AttuneServiceImpl>(std::move(options));
    auto server = Server::Start({"localhost:0"}, {service_.get()}, {.anonymous = access::Role::kAdmin});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::AttuneService::NewStub(
        grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials()));
    ASSERT_EQ(Best().variant().text(), "tiles:BLOCK=64");
    ASSERT_TRUE(Best().pinned());
    ASSERT_EQ(Best().baselines_size(), 0);
  }
  void TearDown() override {
    if (server_ != nullptr) server_->Shutdown(absl::Seconds(5));
  }

  std::string Promote(const std::string& variant, const std::string& previous, bool pinned) {
    v1::Trial trial;
    *trial.mutable_problem() = ToProto(*ParseProblem(kProblem));
    trial.set_problem_text(kProblem);
    trial.set_device_id("cuda:0");
    trial.mutable_variant()->set_family("tiles");
    trial.mutable_variant()->set_text(variant);
    trial.set_policy(v1::POLICY_HOT);
    trial.set_verdict(v1::VERDICT_OK);
    trial.mutable_recipe()->add_launches()->set_entry("attention");
    v1::Incumbent incumbent;
    incumbent.mutable_trial()->set_name(store_.AppendTrial(trial, {}).value());
    incumbent.set_pinned(pinned);
    return store_.Promote(incumbent, previous, {}).value().name();
  }

  v1::GetBestResponse Best() {
    v1::GetBestRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(kProblem));
    grpc::ClientContext context;
    v1::GetBestResponse response;
    const grpc::Status status = stub_->GetBest(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  store::FakeStore store_;
  store::Backups backups_{&store_, ""};
  std::string first_, second_;
  catalog::Host host_;
  std::unique_ptr<catalog::Results> results_;
  std::unique_ptr<AttuneServiceImpl> service_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::AttuneService::Stub> stub_;
};

TEST_F(ChangesTest, ARollBackServesTheOneBefore) {
  v1::RollBackRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem(kProblem));
  request.set_why("slower in production");
  grpc::ClientContext context;
  v1::Incumbent served;
  const grpc::Status status = stub_->RollBack(&context, request, &served);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(served.name(), first_);
  EXPECT_EQ(Best().variant().text(), "tiles:BLOCK=32");
  const auto history = store_.ListIncumbents({.history = true}, 10, "");
  EXPECT_EQ(history->items.at(0).why(), "; rolled back: slower in production");
}

TEST_F(ChangesTest, AnIncumbentThatIsUnpinnedIsServedUnpinned) {
  v1::UnpinRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem(kProblem));
  grpc::ClientContext context;
  v1::Incumbent served;
  const grpc::Status status = stub_->Unpin(&context, request, &served);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(served.name(), second_);
  EXPECT_FALSE(Best().pinned());
}

TEST_F(ChangesTest, ABaselineThatIsRecordedComesWithTheAnswer) {
  v1::RecordBaselineRequest request;
  *request.mutable_baseline()->mutable_problem() = ToProto(*ParseProblem(kProblem));
  request.mutable_baseline()->set_contender("torch-sdpa-flash");
  request.mutable_baseline()->set_median_us(47);
  grpc::ClientContext context;
  v1::Baseline recorded;
  const grpc::Status status = stub_->RecordBaseline(&context, request, &recorded);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(Best().baselines_size(), 1);
  EXPECT_EQ(Best().baselines(0).median_us(), 47);
}

}  // namespace
}  // namespace attune::service
