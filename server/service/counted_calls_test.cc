// Calls over the wire, as metrics count them.
#include <map>
#include <string>

#include "attune/v1/service.grpc.pb.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/metrics/calls.h"
#include "server/service/attune_service.h"
#include "server/service/call_methods.h"
#include "server/service/server.h"
#include "server/store/testing/fake_store.h"

namespace attune::service {
namespace {

class CountedCallsTest : public ::testing::Test {
 protected:
  CountedCallsTest() {
    ServiceOptions options;
    options.results = results_.get();
    options.store = &store_;
    options.host = &host_;
    options.answers = &answers_;
    service_ = std::make_unique<AttuneServiceImpl>(std::move(options));
    server_ = *Server::Start({"localhost:0"}, {service_.get()}, {.anonymous = access::Role::kReader, .calls = &calls_});
    channel_ = grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials());
    stub_ = v1::AttuneService::NewStub(channel_);
  }
  ~CountedCallsTest() override { server_->Shutdown(absl::Seconds(5)); }

  // "GetBest OK": 2, of what has ended.
  std::map<std::string, double> Ended() const {
    metrics::Families families;
    calls_.Collect(families);
    std::map<std::string, double> ended;
    for (const auto& metric : families.at(1).metric) {
      if (metric.counter.value > 0) ended[metric.label[2].value + " " + metric.label[3].value] = metric.counter.value;
    }
    return ended;
  }

  template <typename Request, typename Response>
  grpc::StatusCode Call(grpc::Status (v1::AttuneService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                        Response*),
                        const Request& request) {
    grpc::ClientContext context;
    Response response;
    return (stub_.get()->*method)(&context, request, &response).error_code();
  }

  store::FakeStore store_;
  catalog::Host host_ = catalog::FakeHost();
  std::unique_ptr<catalog::Results> results_ = *catalog::Results::Load(store_, host_);
  metrics::Calls calls_{CallMethods()};
  metrics::Answers answers_;
  std::unique_ptr<AttuneServiceImpl> service_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AttuneService::Stub> stub_;
};

TEST_F(CountedCallsTest, EachEndsOnceWithItsStatus) {
  Call(&v1::AttuneService::Stub::Ping, v1::PingRequest());
  Call(&v1::AttuneService::Stub::Ping, v1::PingRequest());
  Call(&v1::AttuneService::Stub::GetBest, v1::GetBestRequest());
  Call(&v1::AttuneService::Stub::Tune, v1::TuneRequest());
  v1::GetTrialRequest none;
  none.set_name("trials/1");
  Call(&v1::AttuneService::Stub::GetTrial, none);
  const std::map<std::string, double> expected = {
      {"Ping OK", 2}, {"GetBest InvalidArgument", 1}, {"Tune PermissionDenied", 1}, {"GetTrial NotFound", 1}};
  EXPECT_EQ(Ended(), expected);
}

TEST_F(CountedCallsTest, OneWhoseRequestIsNoneHasEndedToo) {
  grpc::GenericStub generic(channel_);
  for (const char* method : {"/attune.v1.AttuneService/GetTrial", "/attune.v1.AttuneService/GetBest"}) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice slice("\xff\xff\xff");
    const auto call = generic.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
  }
  const std::map<std::string, double> expected = {{"GetTrial InvalidArgument", 1}, {"GetBest InvalidArgument", 1}};
  EXPECT_EQ(Ended(), expected);
}

TEST(CallMethods, AreAllOfTheTableWithTheirServices) {
  const std::vector<metrics::CallMethod> methods = CallMethods();
  ASSERT_EQ(methods.size(), std::size(access::kMethods));
  int streams = 0;
  for (size_t i = 0; i < methods.size(); ++i) {
    EXPECT_EQ(methods[i].name, access::kMethods[i].name);
    EXPECT_FALSE(methods[i].service.empty()) << methods[i].name;
    streams += methods[i].streams ? 1 : 0;
  }
  EXPECT_EQ(methods[IndexOf("GetCaller")].service, "attune.v1.AccessService");
  EXPECT_EQ(streams, 1) << "WatchOperation";
}

}  // namespace
}  // namespace attune::service
