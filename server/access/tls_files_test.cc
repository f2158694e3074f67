#include "server/access/tls_files.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/access/testing/authority.h"

namespace attune::access {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class TlsFilesTest : public ::testing::Test {
 protected:
  ~TlsFilesTest() override { std::filesystem::remove_all(directory_); }

  static std::string NewDirectory() {
    std::string path = absl::StrCat(::testing::TempDir(), "/attune-tls-files-test-", getpid());
    std::filesystem::create_directories(path);
    return path;
  }
  std::string Write(const char* name, const std::string& text) {
    const std::string path = absl::StrCat(directory_, "/", name);
    std::ofstream(path) << text;
    return path;
  }

  const std::string directory_ = NewDirectory();
  const Authority authority_{"authority"};
  const Issued server_ = authority_.Issue("server");
  const TlsFiles good_{Write("cert", server_.certificate), Write("key", server_.key),
                       Write("ca", authority_.certificate())};
};

TEST_F(TlsFilesTest, HaveNoMistakeWhenTheyBelongTogether) {
  EXPECT_THAT(MistakesIn(good_, absl::Now()), IsEmpty());
  EXPECT_THAT(MistakesIn({good_.certificate, good_.key, ""}, absl::Now()), IsEmpty());
  EXPECT_THAT(MistakesIn(TlsFiles{}, absl::Now()), IsEmpty());
}

TEST_F(TlsFilesTest, NeedACertificateAndItsKey) {
  EXPECT_THAT(
      MistakesIn({"", good_.key, good_.client_ca}, absl::Now()),
      ElementsAre(absl::StrCat("tls_key is '", good_.key, "', without --tls_cert; TLS needs --tls_cert and --tls_key"),
                  HasSubstr("tls_client_ca is ")));
  EXPECT_THAT(MistakesIn({good_.certificate, "", ""}, absl::Now()), ElementsAre(StartsWith("tls_key is ''")));
  const std::string other = Write("other", authority_.Issue("other").key);
  EXPECT_THAT(
      MistakesIn({good_.certificate, other, ""}, absl::Now()),
      ElementsAre(absl::StrCat("tls_key is '", other, "', which is not the key of --tls_cert, '", good_.certificate,
                               "'; it must name a PEM file with the unencrypted private key of --tls_cert")));
}

TEST_F(TlsFilesTest, CannotBeMissingOrSomethingElse) {
  const std::string none = directory_ + "/none";
  EXPECT_THAT(MistakesIn({none, none, none}, absl::Now()),
              ElementsAre(HasSubstr(absl::StrCat("tls_cert is '", none, "' (")), StartsWith("tls_key is "),
                          StartsWith("tls_client_ca is ")));
  const std::string text = Write("text", "no PEM");
  EXPECT_THAT(
      MistakesIn({text, text, text}, absl::Now()),
      ElementsAre(HasSubstr("which holds no certificate; it must name a PEM file with the server's certificate"),
                  HasSubstr("which holds no private key, or an encrypted one"),
                  HasSubstr("which holds no certificate")));
  EXPECT_THAT(MistakesIn({good_.certificate, good_.certificate, ""}, absl::Now()),
              ElementsAre(HasSubstr("holds no private key")));
  EXPECT_THAT(MistakesIn({directory_, good_.key, ""}, absl::Now()), ElementsAre(StartsWith("tls_cert is ")));
}

TEST_F(TlsFilesTest, CannotHaveExpired) {
  EXPECT_THAT(MistakesIn(good_, absl::Now() + absl::Minutes(90)),
              ElementsAre(HasSubstr("which expired ")));  // the authority's lives longer
}

}  // namespace
}  // namespace attune::access
