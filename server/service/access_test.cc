// Who may call what, over the wire.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "attune/v1/access.grpc.pb.h"
#include "attune/v1/blob.pb.h"
#include "attune/v1/fleet.pb.h"
#include "attune/v1/service.pb.h"
#include "gmock/gmock.h"
#include "google/rpc/rpc.pb.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "server/access/audit_log.h"
#include "server/access/method.h"
#include "server/access/tokens.h"
#include "server/jobs/pending_tuner.h"
#include "server/service/access_service.h"
#include "server/service/attune_service.h"
#include "server/service/blobs/blob_service.h"
#include "server/service/calls.h"
#include "server/service/fleet/fleet_service.h"
#include "server/service/limits.h"
#include "server/service/server.h"
#include "server/store/testing/fake_store.h"

namespace attune::service {
namespace {

using access::Role;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Pair;

// The metadata of a refusal's ErrorInfo.
std::map<std::string, std::string> MetadataOf(const grpc::Status& status) {
  google::rpc::Status wire;
  google::rpc::ErrorInfo info;
  if (!wire.ParseFromString(status.error_details()) || wire.details_size() != 1 || !wire.details(0).UnpackTo(&info)) {
    return {};
  }
  return {info.metadata().begin(), info.metadata().end()};
}

class AccessTest : public ::testing::Test {
 protected:
  AccessTest() : path_(absl::StrCat(::testing::TempDir(), "/attune-access-test-", getpid(), ".sock")) {
    ServiceOptions options;
    options.tuner = &tuner_;
    options.results = results_.get();
    options.host = &host_;
    options.store = &store_;
    options.backups = &backups_;
    options.submissions = &submissions_;
    service_ = std::make_unique<AttuneServiceImpl>(std::move(options));
  }
  ~AccessTest() override {
    if (server_ != nullptr) server_->Shutdown(absl::Seconds(5));
    std::filesystem::remove(path_ + ".tokens");
  }

  // Connects to the `which`th address.
  void Serve(ServerOptions options, size_t which = 0) {
    if (server_ != nullptr) server_->Shutdown(absl::Seconds(5));
    server_.reset();
    auto server = Server::Start({"localhost:0", "unix:" + path_}, {service_.get(), &blobs_, &access_, &fleet_},
                                std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->addresses()[which], grpc::InsecureChannelCredentials());
  }

  // From now on calls over the socket, as the user of this id.
  void ConnectAs(uid_t uid) {
    chmod(path_.c_str(), 0666);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::thread([&] {
      // The system call itself changes this thread alone.
      ASSERT_EQ(syscall(SYS_setresuid, -1, uid, -1), 0);
      EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }).join();
    fcntl(fd, F_SETFL, O_NONBLOCK);
    channel_ = grpc::CreateInsecureChannelFromFd("stranger", fd);
  }

  // An empty request each method either answers or finds something wrong with.
  grpc::Status Call(const std::string& method, const std::string& service = "AttuneService",
                    const std::string& request = "") {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    if (!authorization_.empty()) context.AddMetadata("authorization", authorization_);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    grpc::CompletionQueue queue;
    const grpc::Slice bytes(request);
    auto call = stub.PrepareUnaryCall(&context, absl::StrCat("/attune.v1.", service, "/", method),
                                      grpc::ByteBuffer(&bytes, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  }

  // What the audit log says of the calls of `make`, line by line, in any order of its own.
  std::vector<std::string> AuditedOf(ServerOptions options, const std::function<void()>& make) {
    const std::string directory = path_ + ".audit";
    std::filesystem::create_directories(directory);
    auto audit = access::AuditLog::Open(directory);
    EXPECT_TRUE(audit.ok()) << audit.status();
    options.audit = audit->get();
    Serve(std::move(options));
    make();
    server_->Shutdown(absl::Seconds(5));
    server_.reset();
    audit->reset();
    std::ifstream lines(directory + "/audit.jsonl");
    std::vector<std::string> told;
    for (std::string line; std::getline(lines, line);) told.push_back(line);
    std::filesystem::remove_all(directory);
    return told;
  }

  const std::string path_;
  jobs::PendingTuner tuner_;  // which never arrives
  catalog::Host host_;
  store::FakeStore store_;
  std::unique_ptr<catalog::Results> results_ = *catalog::Results::Load(store_, host_, nullptr);
  store::Backups backups_{nullptr, ""};
  submit::Submissions submissions_{store_, host_, ""};
  std::unique_ptr<AttuneServiceImpl> service_;
  std::unique_ptr<access::Tokens> tokens_ = *access::Tokens::Open(path_ + ".tokens");
  BlobServiceImpl blobs_{&store_.blobs()};
  AccessServiceImpl access_{tokens_.get()};
  FleetServiceImpl fleet_{&store_};
  std::string authorization_;  // of the calls
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

// By the services' own lists, so that a method which forgets to ask is found, whatever the table says.
TEST_F(AccessTest, EveryMethodIsRefusedToThoseBelowItsRoleAndOpenToTheOthers) {
  for (const Role role : access::kEveryRole) {
    Serve({.anonymous = role});
    for (const auto* service : {v1::PingRequest::descriptor()->file()->FindServiceByName("AttuneService"),
                                v1::Blob::descriptor()->file()->FindServiceByName("BlobService"),
                                v1::Token::descriptor()->file()->FindServiceByName("AccessService"),
                                v1::Host::descriptor()->file()->FindServiceByName("FleetService")}) {
      for (int i = 0; i < service->method_count(); ++i) {
        const std::string& name = service->method(i)->name();
        const access::Method* const row = access::FindMethod(name);
        ASSERT_NE(row, nullptr) << name;
        const grpc::Status status = Call(name, service->name());
        EXPECT_EQ(status.error_code() == grpc::StatusCode::PERMISSION_DENIED, role < row->needs)
            << name << " as " << access::RoleName(role) << ": " << status.error_message();
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << name;
      }
    }
  }
}

TEST_F(AccessTest, ARefusalNamesMethodPrincipalAndRoles) {
  Serve({});
  const grpc::Status status = Call("Tune");
  EXPECT_EQ(status.error_message(),
            "loopback has the role reader; Tune needs tuner; bring a token, or connect over the server's Unix socket");
  EXPECT_THAT(MetadataOf(status), IsSupersetOf({Pair("method", "Tune"), Pair("principal", "loopback"),
                                                Pair("role", "reader"), Pair("role_needed", "tuner")}));
}

TEST_F(AccessTest, TheDaemonsOwnUserIsAdminOverTheSocketAndAReaderOverTcp) {
  Serve({}, 1);
  EXPECT_EQ(Call("CreateBackup").error_code(), grpc::StatusCode::FAILED_PRECONDITION) << "there is no --backup_dir";
  Serve({}, 0);
  EXPECT_EQ(Call("CreateBackup").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Call("Ping").ok());
}

// A connection of another user: root becomes one for it, anybody else is one to a server that is told so.
TEST_F(AccessTest, OtherUsersHaveTheirRoleOverTheSocket) {
  const bool root = geteuid() == 0;
  const uid_t stranger = root ? 65534 : geteuid();
  access::LocalUsers users(root ? 0 : geteuid() + 1, Role::kTuner);
  Serve({.users = users}, 1);
  ConnectAs(stranger);
  EXPECT_NE(Call("CancelOperation").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(MetadataOf(Call("CreateBackup"))["principal"], absl::StrCat("uid:", stranger));
  ASSERT_TRUE(users.Assign({absl::StrCat(stranger, "=none")}).ok());
  Serve({.users = users}, 1);
  ConnectAs(stranger);
  EXPECT_EQ(MetadataOf(Call("Ping"))["role"], "none");
}

TEST_F(AccessTest, ATokenGivesItsRoleWhoeverConnectsUntilItIsRevoked) {
  Serve({.tokens = tokens_.get()}, 1);
  const auto stub = v1::AccessService::NewStub(channel_);
  v1::CreateTokenRequest request;
  request.set_id("nightly");
  request.set_role("tuner");
  grpc::ClientContext creating;
  v1::CreateTokenResponse created;
  ASSERT_TRUE(stub->CreateToken(&creating, request, &created).ok());
  EXPECT_EQ(created.token().created_by(), absl::StrCat("uid:", geteuid()));
  for (const size_t which : {0, 1}) {  // also an admin's connection is the token's then
    channel_ = grpc::CreateChannel(server_->addresses()[which], grpc::InsecureChannelCredentials());
    authorization_ = "Bearer " + created.secret();
    EXPECT_NE(Call("CancelOperation").error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(MetadataOf(Call("CreateBackup"))["principal"], "token:nightly");
    authorization_ = "Bearer attune_guessed";
    EXPECT_EQ(Call("Ping").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  }
  authorization_.clear();
  v1::RevokeTokenRequest revoke;
  revoke.set_name("tokens/nightly");
  grpc::ClientContext revoking;
  v1::Token revoked;
  ASSERT_TRUE(stub->RevokeToken(&revoking, revoke, &revoked).ok());
  authorization_ = "bearer " + created.secret();
  EXPECT_EQ(Call("Ping").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Call("GetBest").error_message(), "the call's token is not known, or was revoked");
}

TEST_F(AccessTest, QuotasAreATokensAndNotThoseOfThisHostNorAdmins) {
  Serve({.quotas = {.requests_per_second = 1, .request_bytes = 64}, .tokens = tokens_.get()});
  for (const char* role : {"reader", "admin"}) {
    v1::CreateTokenRequest request;
    request.set_id(role);
    request.set_role(role);
    authorization_ = absl::StrCat("Bearer ", tokens_->Create(request, "test", absl::Now())->secret());
    int refused = 0;
    // More than the quota has even on the slowest host: its calls take less than a second each.
    for (int i = 0; i < 20; ++i)
      refused += Call(i % 2 == 0 ? "Ping" : "GetBest").error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
    EXPECT_EQ(refused > 0, role == std::string("reader"));
  }
  authorization_.clear();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Call("Ping").ok());
}

TEST_F(AccessTest, WhoAsksIsToldWhoItIsAndWhichQuotasHold) {
  Serve({.quotas = {.operations = 7, .requests_per_second = 1000}, .tokens = tokens_.get()});
  const auto stub = v1::AccessService::NewStub(channel_);
  const auto ask = [&](const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::Caller caller;
    EXPECT_TRUE(stub->GetCaller(&context, v1::GetCallerRequest(), &caller).ok());
    return caller.ShortDebugString();
  };
  v1::CreateTokenRequest request;
  request.set_id("ci");
  request.set_role("tuner");
  EXPECT_EQ(ask(tokens_->Create(request, "test", absl::Now())->secret()),
            "principal: \"token:ci\" role: \"tuner\" quotas { name: \"operations\" limit: 7 } "
            "quotas { name: \"requests_per_second\" limit: 1000 }");
  EXPECT_EQ(ask(""), "principal: \"loopback\" role: \"reader\"");
}

TEST_F(AccessTest, ACallOverItsQuotaNamesItAndWhenToTryAgain) {
  Serve({.quotas = {.requests_per_second = 1, .request_bytes = 64}, .tokens = tokens_.get()});
  v1::CreateTokenRequest request;
  request.set_id("ci");
  request.set_role("tuner");
  authorization_ = absl::StrCat("Bearer ", tokens_->Create(request, "test", absl::Now())->secret());
  v1::CancelOperationRequest large;
  large.set_name(std::string(100, 'x'));
  const auto stub = v1::AttuneService::NewStub(channel_);
  grpc::ClientContext context;
  context.AddMetadata("authorization", authorization_);
  v1::Operation operation;
  const grpc::Status too_large = stub->CancelOperation(&context, large, &operation);
  EXPECT_EQ(too_large.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(MetadataOf(too_large),
              IsSupersetOf({Pair("quota", "request_bytes"), Pair("limit", "64"), Pair("principal", "token:ci")}));
  grpc::Status refused;
  for (int i = 0; i < 20 && refused.ok(); ++i) refused = Call("Ping");
  ASSERT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  google::rpc::Status wire;
  google::rpc::RetryInfo again;
  ASSERT_TRUE(wire.ParseFromString(refused.error_details()));
  ASSERT_EQ(wire.details_size(), 2);
  ASSERT_TRUE(wire.details(1).UnpackTo(&again));
  EXPECT_GT(again.retry_delay().nanos() + again.retry_delay().seconds(), 0);
}

TEST_F(AccessTest, WhatIsRefusedAndWhatChangesIsAuditedAndNothingElse) {
  const std::vector<std::string> told = AuditedOf({.anonymous = Role::kTuner}, [&] {
    const auto stub = v1::AttuneService::NewStub(channel_);
    v1::CancelOperationRequest cancel;
    cancel.set_name("operations/7");
    grpc::ClientContext cancelling;
    v1::Operation operation;
    stub->CancelOperation(&cancelling, cancel, &operation);
    EXPECT_TRUE(Call("Ping").ok());
    Call("ListOperations");
    v1::CreateBackupRequest backup;
    backup.set_id("mine");
    grpc::ClientContext copying;
    v1::Backup made;
    EXPECT_EQ(stub->CreateBackup(&copying, backup, &made).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  });
  EXPECT_THAT(told,
              ElementsAre(HasSubstr(R"("principal":"loopback","role":"tuner","method":"CancelOperation",)"
                                    R"("resource":"operations/7","outcome":"UNAVAILABLE")"),
                          HasSubstr(R"("method":"CreateBackup","resource":"mine","outcome":"PERMISSION_DENIED")")));
}

TEST_F(AccessTest, WhatIsTooLargeOrNoRequestIsRefusedAndAudited) {
  v1::CreateTokenRequest token;
  token.set_id("ci");
  token.set_role("tuner");
  authorization_ = absl::StrCat("Bearer ", tokens_->Create(token, "uid:0", absl::Now())->secret());
  const std::vector<std::string> told = AuditedOf({.tokens = tokens_.get()}, [&] {
    v1::GetTrialRequest large;  // as a request of any of these
    large.set_name(std::string(kMostRequestBytes, 'x'));
    for (const char* method : {"CancelOperation", "GetTrial", "WatchOperation", "GetBest"}) {
      const grpc::Status status = Call(method, "AttuneService", large.SerializeAsString());
      EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << method << ": " << status.error_message();
    }
    for (const char* method : {"Submit", "GetBest"}) {
      EXPECT_EQ(Call(method, "AttuneService", "no request").error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    }
    EXPECT_TRUE(Call("Ping").ok());
  });
  const auto refused = [](const std::string& method, const std::string& outcome) {
    return AllOf(HasSubstr(absl::StrCat(R"("principal":"token:ci","role":"tuner","method":")", method, "\"")),
                 HasSubstr(absl::StrCat(R"("outcome":")", outcome, "\"")));
  };
  EXPECT_THAT(told,
              ElementsAre(refused("CancelOperation", "RESOURCE_EXHAUSTED"), refused("GetTrial", "RESOURCE_EXHAUSTED"),
                          refused("WatchOperation", "RESOURCE_EXHAUSTED"), refused("GetBest", "RESOURCE_EXHAUSTED"),
                          refused("Submit", "INVALID_ARGUMENT"), refused("GetBest", "INVALID_ARGUMENT")));
}

TEST_F(AccessTest, PathsThatLeadElsewhereAreRefusedAndAudited) {
  v1::Device& device = host_.devices.emplace_back();
  device.set_id("cuda:0");
  device.set_backend(v1::BACKEND_CUDA);
  v1::SubmitRequest submit;
  *submit.add_problems() = ToProto(*ParseProblem("b1.h2.q3.d64.f16"));
  submit.set_loop("tiles");
  submit.add_files()->set_text("kernel void f() {}");
  v1::PutBlobRequest put;
  put.set_namespace_("triton");
  put.set_key("0f");
  put.set_file("kernel.cubin");
  put.set_data("code");
  std::vector<testing::Matcher<std::string>> expected;
  const std::vector<std::string> told = AuditedOf({.anonymous = Role::kAdmin}, [&] {
    for (const char* path : {"../attention.cl", "/etc/passwd", "common/../../x.h", "..", ""}) {
      submit.mutable_files(0)->set_path(path);
      const grpc::Status status = Call("Submit", "AttuneService", submit.SerializeAsString());
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << path << ": " << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr(path));
      expected.push_back(
          HasSubstr(R"("method":"Submit","resource":"tiles","outcome":"INVALID_ARGUMENT","error":"files)"));
    }
    const auto put_at = [&](const char* space, const char* key, const char* file) {
      put.set_namespace_(space);
      put.set_key(key);
      put.set_file(file);
      const grpc::Status status = Call("PutBlob", "BlobService", put.SerializeAsString());
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << space << key << file;
      expected.push_back(HasSubstr(absl::StrCat(R"("method":"PutBlob","resource":")", space, "/", key, "/", file,
                                                R"(","outcome":"INVALID_ARGUMENT")")));
    };
    put_at("..", "0f", "kernel.cubin");
    put_at("triton", "0f", "../attune.db");
    put_at("triton", "0f", "/etc/passwd");
  });
  EXPECT_THAT(told, testing::ElementsAreArray(expected));
}

TEST(ResourceOf, IsWhatARequestNames) {
  v1::TuneRequest tune;
  EXPECT_EQ(ResourceOf(tune), "");
  *tune.mutable_problem() = ToProto(*ParseProblem("b1.h2.q3.d64.f16"));
  EXPECT_EQ(ResourceOf(tune), "b1.h2.q3.d64.f16");
  v1::SweepRequest sweep;
  sweep.mutable_plan()->set_title("nightly");
  EXPECT_EQ(ResourceOf(sweep), "nightly");
  v1::RecordBaselineRequest baseline;
  baseline.mutable_baseline()->set_problem_text("b1.h2.q4.d64.f16");
  EXPECT_EQ(ResourceOf(baseline), "b1.h2.q4.d64.f16");
  v1::RetryTrialsRequest retry;
  retry.mutable_filter()->set_problem("b1.h2.q5.d64.f16");
  EXPECT_EQ(ResourceOf(retry), "b1.h2.q5.d64.f16");
  EXPECT_EQ(ResourceOf(v1::PingRequest()), "");
}

TEST_F(AccessTest, EachPrincipalHasItsOwnConnectionsOfOneService) {
  Serve({});
  for (const size_t which : {0, 1, 0, 1}) {
    channel_ = grpc::CreateChannel(server_->addresses()[which], grpc::InsecureChannelCredentials());
    EXPECT_EQ(Call("ListBackups").error_code() == grpc::StatusCode::PERMISSION_DENIED, which == 0);
  }
}

}  // namespace
}  // namespace attune::service
