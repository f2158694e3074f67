// Whose trace a call belongs to, as the log and jobs have it.
#include "attune/v1/service.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "server/base/testing/logged.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/jobs/tuner.h"
#include "server/service/attune_service.h"
#include "server/service/server.h"
#include "server/store/testing/fake_store.h"

namespace attune::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Remembers who has asked, and fails.
class BrokenTuner final : public jobs::Tuner {
 public:
  explicit BrokenTuner(jobs::Asker& asker) : asker_(asker) {}
  absl::Status Resume() override { return absl::OkStatus(); }
  absl::StatusOr<v1::Operation> Tune(const v1::TuneRequest&, const jobs::Asker& asker) override {
    asker_ = asker;
    return absl::InternalError("a screw is loose");
  }
  absl::StatusOr<v1::Operation> Sweep(const v1::SweepRequest&, const jobs::Asker&) override { return Nothing(); }
  absl::StatusOr<v1::Operation> Evaluate(const v1::EvaluateVariantRequest&, const jobs::Asker&) override {
    return Nothing();
  }
  absl::StatusOr<v1::Operation> Submit(const v1::SubmitRequest&, const jobs::Asker&) override { return Nothing(); }
  absl::StatusOr<v1::Operation> Profile(const v1::ProfileRequest&, const jobs::Asker&) override { return Nothing(); }
  absl::StatusOr<v1::Operation> Sanitize(const v1::SanitizeRequest&, const jobs::Asker&) override { return Nothing(); }
  absl::StatusOr<v1::Operation> GetOperation(absl::string_view) override { return Nothing(); }
  absl::StatusOr<v1::Operation> Cancel(absl::string_view) override { return Nothing(); }
  bool IsIdle(absl::string_view) override { return true; }
  absl::StatusOr<std::function<void()>> Watch(absl::string_view, Watcher) override { return Nothing(); }
  void Drain(absl::Duration) override {}

 private:
  static absl::Status Nothing() { return absl::NotFoundError("there is none"); }
  jobs::Asker& asker_;
};

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() {
    ServiceOptions options;
    options.tuner = &tuner_;
    options.results = results_.get();
    options.store = &store_;
    options.host = &host_;
    service_ = std::make_unique<AttuneServiceImpl>(std::move(options));
    server_ = *Server::Start({"localhost:0"}, {service_.get()}, {.anonymous = access::Role::kAdmin});
    stub_ = v1::AttuneService::NewStub(
        grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials()));
  }
  ~TraceTest() override { server_->Shutdown(absl::Seconds(5)); }

  // What the log has of a Tune that fails.
  std::string LogOf(const std::string& traceparent) {
    return Logged([&] {
      grpc::ClientContext context;
      context.AddMetadata("traceparent", traceparent);
      v1::TuneRequest request;
      *request.mutable_problem() = ToProto(*ParseProblem("b1.h1.q128.d64.f16"));
      v1::Operation response;
      EXPECT_EQ(stub_->Tune(&context, request, &response).error_code(), grpc::StatusCode::INTERNAL);
    });
  }

  store::FakeStore store_;
  catalog::Host host_ = catalog::FakeHost();
  std::unique_ptr<catalog::Results> results_ = *catalog::Results::Load(store_, host_);
  jobs::Asker asker_;
  BrokenTuner tuner_{asker_};
  std::unique_ptr<AttuneServiceImpl> service_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::AttuneService::Stub> stub_;
};

TEST_F(TraceTest, IsHandedToTheJobAndToldWithTheServersOwnFailures) {
  const std::string log = LogOf("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  EXPECT_EQ(asker_.trace, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_THAT(log, AllOf(HasSubstr(" error call failed method=Tune code=INTERNAL error=\"a screw is loose\""),
                         HasSubstr(" principal=loopback trace=4bf92f3577b34da6a3ce929d0e0e4736\n")));
}

TEST_F(TraceTest, ThatIsNoneIsLeftOutWhateverItHolds) {
  for (const std::string& rubbish : {std::string("rubbish"), std::string(4000, 'a'), std::string()}) {
    const std::string log = LogOf(rubbish);
    EXPECT_EQ(asker_.trace, "");
    EXPECT_THAT(log, AllOf(HasSubstr("call failed"), Not(HasSubstr("trace")), Not(HasSubstr("aaaa"))));
  }
}

}  // namespace
}  // namespace attune::service
