// TLS over the wire: who is let in, as whom, and what is told of the others.
#include <openssl/ssl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "attune/v1/access.grpc.pb.h"
#include "attune/v1/service.grpc.pb.h"
#include "gmock/gmock.h"
#include "google/rpc/rpc.pb.h"
#include "gtest/gtest.h"
#include "server/access/audit_log.h"
#include "server/access/testing/authority.h"
#include "server/access/tokens.h"
#include "server/jobs/pending_tuner.h"
#include "server/service/access_service.h"
#include "server/service/attune_service.h"
#include "server/service/server.h"
#include "server/store/testing/fake_store.h"

namespace attune::service {
namespace {

using access::Authority;
using access::Issued;
using access::Role;
using ::testing::HasSubstr;

using ChannelCredentials = std::shared_ptr<grpc::ChannelCredentials>;

ChannelCredentials Trusting(const Authority& authority, const Issued& client = {}) {
  return grpc::SslCredentials({authority.certificate(), client.key, client.certificate});
}

// Of a refusal's ErrorInfo.
std::string PrincipalIn(const grpc::Status& status) {
  google::rpc::Status wire;
  google::rpc::ErrorInfo info;
  wire.ParseFromString(status.error_details());
  if (wire.details_size() > 0) wire.details(0).UnpackTo(&info);
  return info.metadata().contains("principal") ? info.metadata().at("principal") : "";
}

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    ServiceOptions options;
    options.tuner = &tuner_;
    options.results = results_.get();
    options.host = &host_;
    options.store = &store_;
    options.backups = &backups_;
    service_ = std::make_unique<AttuneServiceImpl>(std::move(options));
    Install(authority_.Issue("server"));
    Write("ca", authority_.certificate());
  }
  ~TlsTest() override {
    Close();
    std::filesystem::remove_all(directory_);
  }

  static std::string NewDirectory() {
    std::string path = absl::StrCat(::testing::TempDir(), "/attune-tls-test-", getpid());
    std::filesystem::create_directories(path);
    return path;
  }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(directory_ + "/" + name) << text; }
  void Install(const Issued& server) const {
    Write("cert", server.certificate);
    Write("key", server.key);
  }
  TlsOptions Tls(bool with_clients = true) const {
    TlsOptions tls{.files = {directory_ + "/cert", directory_ + "/key", with_clients ? directory_ + "/ca" : ""},
                   .reload_seconds = 1};
    EXPECT_TRUE(tls.clients.Assign({"nightly=tuner", "gone=none"}).ok());
    return tls;
  }

  void Serve(ServerOptions options, const std::string& address = "localhost:0") {
    audit_ = *access::AuditLog::Open(directory_);
    options.audit = audit_.get();
    options.tokens = tokens_.get();
    auto server = Server::Start({address}, {service_.get(), &access_}, std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Close() {
    if (server_ != nullptr) server_->Shutdown(absl::Seconds(5));
    server_.reset();
    audit_.reset();
  }
  std::string Audited() {
    Close();
    std::ifstream file(directory_ + "/audit.jsonl");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // An empty call of a connection of its own.
  template <typename Response, typename Request>
  grpc::Status Call(grpc::Status (v1::AttuneService::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const ChannelCredentials& credentials, const std::string& token = "") {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const std::string address = absl::StrReplaceAll(server_->addresses()[0], {{"0.0.0.0", "127.0.0.1"}});
    const auto stub = v1::AttuneService::NewStub(grpc::CreateCustomChannel(address, credentials, own));
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    Response response;
    return ((*stub).*method)(&context, Request(), &response);
  }
  grpc::Status Ping(const ChannelCredentials& credentials) { return Call(&v1::AttuneService::Stub::Ping, credentials); }
  grpc::Status Cancel(const ChannelCredentials& credentials, const std::string& token = "") {
    return Call(&v1::AttuneService::Stub::CancelOperation, credentials, token);
  }
  std::string NewToken(const std::string& role) {
    v1::CreateTokenRequest request;
    request.set_id(role);
    request.set_role(role);
    return tokens_->Create(request, "test", absl::Now())->secret();
  }

  const std::string directory_ = NewDirectory();
  const Authority authority_{"authority"};
  const Authority stranger_{"authority"};  // of the same name
  jobs::PendingTuner tuner_;               // which never arrives
  catalog::Host host_;
  store::FakeStore store_;
  std::unique_ptr<catalog::Results> results_ = *catalog::Results::Load(store_, host_, nullptr);
  store::Backups backups_{nullptr, ""};
  std::unique_ptr<AttuneServiceImpl> service_;
  std::unique_ptr<access::Tokens> tokens_ = *access::Tokens::Open(directory_ + "/tokens");
  AccessServiceImpl access_{tokens_.get()};
  std::unique_ptr<access::AuditLog> audit_;
  std::unique_ptr<Server> server_;
};

TEST_F(TlsTest, AClientIsWhomItsCertificateNamesWithTheRoleOfThat) {
  Serve({.anonymous = Role::kAdmin, .tls = Tls()});
  const ChannelCredentials nightly = Trusting(authority_, authority_.Issue("nightly"));
  EXPECT_TRUE(Ping(nightly).ok());
  EXPECT_EQ(Cancel(nightly).error_code(), grpc::StatusCode::UNAVAILABLE) << "there is no tuner";
  const grpc::Status refused = Call(&v1::AttuneService::Stub::CreateBackup, nightly);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(PrincipalIn(refused), "cert:nightly");
  const ChannelCredentials other = Trusting(authority_, authority_.Issue("other"));
  EXPECT_TRUE(Ping(other).ok());
  EXPECT_EQ(PrincipalIn(Cancel(other)), "cert:other");
  EXPECT_EQ(PrincipalIn(Ping(Trusting(authority_, authority_.Issue("gone")))), "cert:gone");
  EXPECT_EQ(Ping(Trusting(authority_, authority_.Issue(""))).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(Audited(), HasSubstr(R"("principal":"cert:nightly","role":"tuner","method":"CancelOperation")"));
}

TEST_F(TlsTest, ExpiredAndForeignCertificatesAndNoneAreRefusedAndAudited) {
  Serve({.tls = Tls()});
  const auto refused = [this](const ChannelCredentials& credentials) {
    EXPECT_EQ(Ping(credentials).error_code(), grpc::StatusCode::UNAVAILABLE);
  };
  refused(Trusting(authority_, authority_.Issue("nightly", -absl::Minutes(1))));
  EXPECT_THAT(Audited(), HasSubstr(R"("method":"TLS","resource":"","outcome":"UNAUTHENTICATED")"));
  std::filesystem::remove(directory_ + "/audit.jsonl");
  Serve({.tls = Tls()});
  refused(Trusting(authority_, Authority("stranger").Issue("nightly")));
  EXPECT_THAT(Audited(), HasSubstr("certificate verify failed"));
  std::filesystem::remove(directory_ + "/audit.jsonl");
  Serve({.tls = Tls()});
  refused(Trusting(authority_, stranger_.Issue("nightly")));
  EXPECT_THAT(Audited(), HasSubstr("no connection: Handshake failed"));
  std::filesystem::remove(directory_ + "/audit.jsonl");
  Serve({.tls = Tls()});
  refused(Trusting(authority_));
  EXPECT_THAT(Audited(), HasSubstr("peer did not return a certificate"));
  Serve({.tls = Tls()});
  refused(grpc::InsecureChannelCredentials());
  refused(Trusting(stranger_, authority_.Issue("nightly")));
}

TEST_F(TlsTest, WithoutAnAuthorityOfClientsTheyAreAnonymous) {
  Serve({.tls = Tls(false)});
  EXPECT_TRUE(Ping(Trusting(authority_)).ok());
  EXPECT_EQ(PrincipalIn(Cancel(Trusting(authority_))), "loopback");
}

TEST_F(TlsTest, AddressesOfOtherHostsAreServedOnceTheyAreEncryptedAndTokensThere) {
  const std::string token = NewToken("tuner");
  Serve({.tls = Tls(false)}, "0.0.0.0:0");
  EXPECT_EQ(PrincipalIn(Cancel(Trusting(authority_))), "network");
  EXPECT_EQ(Cancel(Trusting(authority_), token).error_code(), grpc::StatusCode::UNAVAILABLE) << "there is no tuner";
}

TEST_F(TlsTest, ATokenComesBeforeACertificate) {
  Serve({.tls = Tls()});
  const Issued client = authority_.Issue("nightly");
  EXPECT_EQ(PrincipalIn(Cancel(Trusting(authority_, client), NewToken("reader"))), "token:reader");
}

TEST_F(TlsTest, ATokenInClearFromAnotherHostIsRefusedAndAuditedWhateverItIs) {
  Serve({.anonymous = Role::kAdmin, .insecure = true}, "0.0.0.0:0");
  for (const std::string& token : {NewToken("tuner"), std::string("guessed")}) {
    const grpc::Status refused = Cancel(grpc::InsecureChannelCredentials(), token);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(refused.error_message(), HasSubstr("a token came in clear from another host"));
  }
  EXPECT_TRUE(Ping(grpc::InsecureChannelCredentials()).ok());
  EXPECT_THAT(Audited(), HasSubstr(R"("outcome":"UNAUTHENTICATED","error":"a token came in clear)"));
}

TEST_F(TlsTest, NewFilesAreUsedWithoutARestart) {
  Serve({.tls = Tls()});
  const ChannelCredentials before = Trusting(authority_, authority_.Issue("nightly"));
  const ChannelCredentials after = Trusting(stranger_, stranger_.Issue("nightly"));
  EXPECT_TRUE(Ping(before).ok());
  EXPECT_FALSE(Ping(after).ok());
  Install(stranger_.Issue("server"));
  Write("ca", stranger_.certificate());
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  bool served = false;
  while (!served && absl::Now() < deadline) {
    served = Ping(after).ok();
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_TRUE(served);
  EXPECT_FALSE(Ping(before).ok());
}

TEST_F(TlsTest, NothingBefore1_2IsSpoken) {
  Serve({.tls = Tls(false)});
  const auto connects = [this](int version) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    SSL_CTX_set_security_level(context.get(), 0);  // else OpenSSL itself speaks nothing before 1.2
    SSL_CTX_set_min_proto_version(context.get(), version);
    SSL_CTX_set_max_proto_version(context.get(), version);
    const std::unique_ptr<BIO, decltype(&BIO_free_all)> connection(BIO_new_ssl_connect(context.get()), &BIO_free_all);
    SSL* tls = nullptr;
    BIO_get_ssl(connection.get(), &tls);
    const unsigned char http2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(tls, http2, sizeof http2);
    BIO_set_conn_hostname(connection.get(), server_->addresses()[0].c_str());
    return BIO_do_connect(connection.get()) == 1 && BIO_do_handshake(connection.get()) == 1;
  };
  EXPECT_FALSE(connects(TLS1_VERSION));
  EXPECT_FALSE(connects(TLS1_1_VERSION));
  EXPECT_TRUE(connects(TLS1_2_VERSION));
  EXPECT_TRUE(connects(TLS1_3_VERSION));
}

}  // namespace
}  // namespace attune::service
