#include "client/dashboard/guard.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::dashboard {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// The status of the refusal; 0 when the request is let through.
int StatusOf(const Guard& guard, const HttpRequest& request) {
  const std::optional<HttpResponse> refusal = guard.Refuse(request);
  return refusal.has_value() ? refusal->status : 0;
}
int OfHost(const Guard& guard, const std::string& host) { return StatusOf(guard, {.headers = {{"Host", host}}}); }
const Guard& Ours() {
  static const Guard guard(false, 7412, {});
  return guard;
}

TEST(Guard, TakesTheNamesOfThisHostWithItsPort) {
  for (const char* host : {"127.0.0.1:7412", "localhost:7412", "[::1]:7412", "LocalHost:7412"}) {
    EXPECT_EQ(OfHost(Ours(), host), 0) << host;
  }
}

TEST(Guard, RefusesEveryOtherHost) {
  for (const char* host :
       {"", "evil.example", "evil.example:7412", "localhost", "localhost:7413", "127.0.0.1:7412.evil.example",
        "localhost.evil.example:7412", "127.0.0.2:7412", "[::1]", "localhost:7412 ", "a@localhost:7412"}) {
    EXPECT_EQ(OfHost(Ours(), host), 421) << host;
  }
  EXPECT_EQ(StatusOf(Ours(), {}), 421);
  EXPECT_EQ(StatusOf(Ours(), {.headers = {{"Host", "localhost:7412"}, {"Host", "evil.example"}}}), 421);
}

TEST(Guard, TakesTheNamesThatItIsTold) {
  const Guard guard(false, 7412, {"gpu7.example.org", "localhost:9000"});
  EXPECT_EQ(OfHost(guard, "gpu7.example.org:7412"), 0);
  EXPECT_EQ(OfHost(guard, "localhost:9000"), 0);
  EXPECT_EQ(OfHost(guard, "gpu7.example.org:9000"), 421);
}

TEST(Guard, KnowsThePortsThatAreNotWritten) {
  EXPECT_EQ(OfHost(Guard(false, 80, {}), "localhost"), 0);
  EXPECT_EQ(OfHost(Guard(true, 443, {}), "[::1]"), 0);
  EXPECT_EQ(OfHost(Guard(true, 80, {}), "localhost"), 421);
}

TEST(Guard, TakesOnlyItsOwnOrigin) {
  const auto of_origin = [](const Guard& guard, const std::string& origin) {
    return StatusOf(guard, {.headers = {{"Host", "localhost:7412"}, {"Origin", origin}}});
  };
  EXPECT_EQ(of_origin(Ours(), "http://localhost:7412"), 0);
  EXPECT_EQ(of_origin(Guard(true, 7412, {}), "https://localhost:7412"), 0);
  for (const char* origin : {"null", "", "http://evil.example", "https://localhost:7412", "http://localhost:7413",
                             "http://localhost", "http://localhost:7412.evil.example", "localhost:7412"}) {
    EXPECT_EQ(of_origin(Ours(), origin), 403) << origin;
  }
  EXPECT_EQ(StatusOf(Ours(), {.headers = {{"Host", "localhost:7412"},
                                          {"Origin", "http://localhost:7412"},
                                          {"Origin", "http://evil.example"}}}),
            403);
}

TEST(Guard, TakesFromOtherSitesOnlyALinkToTheFirstPage) {
  const auto of = [](const std::string& path, const std::string& site, const std::string& mode, const std::string& to) {
    return StatusOf(
        Ours(),
        {.path = path,
         .headers = {
             {"Host", "localhost:7412"}, {"Sec-Fetch-Site", site}, {"Sec-Fetch-Mode", mode}, {"Sec-Fetch-Dest", to}}});
  };
  EXPECT_EQ(of("/api/trends", "same-origin", "cors", "empty"), 0);
  EXPECT_EQ(of("/", "none", "navigate", "document"), 0);
  for (const char* site : {"cross-site", "same-site", "strange"}) {
    EXPECT_EQ(of("/", site, "navigate", "document"), 0) << site;
    EXPECT_EQ(of("/", site, "navigate", "iframe"), 403) << site;
    EXPECT_EQ(of("/", site, "no-cors", "document"), 403) << site;
    EXPECT_EQ(of("/api/trends", site, "navigate", "document"), 403) << site;
    EXPECT_EQ(of("/app.js", site, "no-cors", "script"), 403) << site;
  }
}

TEST(SecurityHeaders, AllowAPageItsOwnFilesAndNothingElse) {
  EXPECT_THAT(SecurityHeaders(),
              UnorderedElementsAre(
                  Pair("Content-Security-Policy",
                       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
                       "'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
                  Pair("X-Content-Type-Options", "nosniff"), Pair("Referrer-Policy", "no-referrer"),
                  Pair("Cross-Origin-Resource-Policy", "same-origin")));
}

TEST(CheckHostName, NamesTheFlagTheValueAndWhatIsAllowed) {
  for (const char* name : {"gpu7", "gpu7.example.org", "localhost:9000", "[::1]:9000", "10.0.0.1", "[fe80::1]"}) {
    EXPECT_TRUE(CheckHostName(name).ok()) << name;
  }
  for (const char* name : {"", ":9000", "localhost:0", "localhost:65536", "localhost:x", "a/b", "a b", "*"}) {
    const absl::Status status = CheckHostName(name);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--host-name is '" + std::string(name) + "'; allowed: "));
  }
}

}  // namespace
}  // namespace attune::dashboard
