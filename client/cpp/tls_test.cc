#include "client/cpp/tls.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "client/testing/fake_access.h"
#include "client/testing/fake_attune.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/access/testing/authority.h"
#include "tests/golden/golden.h"

namespace attune {
namespace {

using access::Authority;
using access::Issued;
using ::testing::HasSubstr;

TEST(Tls, IsForOtherHostsAndWhereItIsAskedFor) {
  for (const bool encrypted : {true, false}) {
    for (const auto& vector : Golden("tls", encrypted ? "encrypted" : "clear")) {
      const auto& options = vector["options"];
      const TlsOptions tls{.server_name = options.value("tls_server_name", ""),
                           .insecure = options.value("insecure", false)};
      EXPECT_EQ(IsEncrypted(vector["server"].get<std::string>(), tls), encrypted) << vector;
    }
  }
}

class TlsClientTest : public ::testing::Test {
 protected:
  ~TlsClientTest() override { std::filesystem::remove_all(directory_); }

  static std::string NewDirectory() {
    std::string path = absl::StrCat(::testing::TempDir(), "/attune-tls-client-test-", getpid());
    std::filesystem::create_directories(path);
    return path;
  }
  std::string Write(const char* name, const std::string& text) const {
    std::string path = absl::StrCat(directory_, "/", name);
    std::ofstream(path) << text;
    return path;
  }
  // Asks clients for certificates of the authority, too.
  std::shared_ptr<grpc::ServerCredentials> ServerCredentials() const {
    const Issued own = authority_.Issue("server");
    grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = authority_.certificate();
    options.pem_key_cert_pairs.push_back({own.key, own.certificate});
    return grpc::SslServerCredentials(options);
  }
  absl::Status Ping(const TlsOptions& tls) {
    auto client = Client::Connect(server_.address(), {.retry = {.attempts = 1}, .tls = tls});
    return client.ok() ? (*client)->Ping() : client.status();
  }

  const std::string directory_ = NewDirectory();
  const Authority authority_{"authority"};
  const Authority stranger_{"stranger"};
  const Issued client_ = authority_.Issue("client");
  const TlsOptions good_{.ca = Write("ca", authority_.certificate()),
                         .certificate = Write("cert", client_.certificate),
                         .key = Write("key", client_.key)};
  testing::FakeAttune fake_;
  testing::FakeAccess access_;
  testing::RunningServer server_{&fake_, "127.0.0.1:0", &access_, ServerCredentials()};
};

TEST_F(TlsClientTest, VerifiesTheServerAndBringsACertificate) {
  EXPECT_TRUE(Ping(good_).ok()) << Ping(good_);
  EXPECT_EQ(fake_.calls("Ping"), 1);
}

TEST_F(TlsClientTest, RefusesAServerOfAnotherAuthorityOrNameAndSaysSo) {
  TlsOptions foreign = good_;
  foreign.ca = Write("other", stranger_.certificate());
  const absl::Status refused = Ping(foreign);
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("no TLS connection to 127.0.0.1:"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("tls_ca"));
  TlsOptions system = good_;
  system.ca = "";
  EXPECT_TRUE(absl::IsUnavailable(Ping(system)));
  TlsOptions misnamed = good_;
  misnamed.server_name = "l4";
  EXPECT_THAT(std::string(Ping(misnamed).message()), HasSubstr("no TLS connection to 127.0.0.1:"));
  misnamed.server_name = "localhost";
  EXPECT_TRUE(Ping(misnamed).ok());
  EXPECT_EQ(fake_.calls("Ping"), 1);
}

TEST_F(TlsClientTest, IsRefusedWithoutACertificateOrInClear) {
  EXPECT_TRUE(absl::IsUnavailable(Ping({.ca = good_.ca})));
  EXPECT_TRUE(absl::IsUnavailable(Ping({})));
  EXPECT_EQ(fake_.calls("Ping"), 0);
}

TEST_F(TlsClientTest, BringsATokenToAnotherHostOverTlsAlone) {
  const std::string token = Write("token", "attune_mine");
  EXPECT_TRUE(Client::Connect("l4:7411", {.token_file = token}).ok());
  const auto clear = Client::Connect("l4:7411", {.token_file = token, .tls = {.insecure = true}});
  EXPECT_TRUE(absl::IsFailedPrecondition(clear.status()));
  const auto client = Client::Connect(server_.address(), {.token_file = token, .tls = good_});
  EXPECT_TRUE((*client)->ListTokens().ok());
  EXPECT_EQ(access_.authorization(), "Bearer attune_mine");
}

TEST_F(TlsClientTest, SaysWhatIsWrongWithAnOption) {
  const auto error = [](const TlsOptions& tls) {
    const absl::Status status = Client::Connect("l4:7411", {.tls = tls}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error({.ca = "/no/such/file"}), HasSubstr("tls_ca is '/no/such/file', which cannot be read"));
  EXPECT_THAT(error({.ca = good_.key}), HasSubstr("which holds no certificate in PEM"));
  EXPECT_THAT(error({.certificate = good_.certificate}), HasSubstr("and tls_key is ''; allowed: both or neither"));
  EXPECT_THAT(error({.certificate = good_.certificate, .key = good_.certificate}),
              HasSubstr("which holds no unencrypted private key in PEM"));
  EXPECT_THAT(error({.certificate = good_.certificate, .key = Write("other", stranger_.Issue("x").key)}),
              HasSubstr("which is not the key of tls_cert"));
  EXPECT_THAT(error({.ca = good_.ca, .insecure = true}), HasSubstr("insecure is set together with other TLS options"));
}

}  // namespace
}  // namespace attune
