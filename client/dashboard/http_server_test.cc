// The server on real sockets, with clients that mean it well and others.
#include "client/dashboard/http_server.h"

#include <httplib.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/dashboard/errors.h"
#include "client/dashboard/guard.h"
#include "client/dashboard/testing/raw_connection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/access/testing/authority.h"

namespace attune::dashboard {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGet[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

class HttpServerTest : public ::testing::Test {
 protected:
  int Start(const HttpServerOptions& options = {}) {
    auto server = HttpServer::Bind(options);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Serve([this](const HttpRequest& request) { return handler_(request); });
    return server_->port();
  }
  std::string Ask(const std::string& text) { return RawConnection(server_->port(), text).ReadAll(); }
  static HttpResponse Text(const std::string& text) { return {.content = MakeContent("text/plain", text)}; }

  HttpServer::Handler handler_ = [](const HttpRequest&) { return Text("hello"); };
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, HandsOverTheRequestAsItWasSent) {
  HttpRequest got;
  handler_ = [&](const HttpRequest& request) {
    got = request;
    return Text("hello");
  };
  Start();
  const std::string answer = Ask("GET /a%2Fb?x=%20y&x=1=2 HTTP/1.1\r\nHost: here\r\nX: 1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, ::testing::EndsWith("\r\n\r\nhello"));
  EXPECT_EQ(got.method, "GET");
  EXPECT_EQ(got.path, "/a%2Fb");
  EXPECT_EQ(got.query, "x=%20y&x=1=2");
  EXPECT_EQ(got.header("host"), "here");
  EXPECT_EQ(got.header("x"), "1");
}

TEST_F(HttpServerTest, AnswersHeadWithoutTheBody) {
  Start();
  const std::string answer = Ask("HEAD / HTTP/1.1\r\nHost: here\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_THAT(answer, ::testing::EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, AConnectionIsForOneRequest) {
  Start();
  const std::string answer = Ask(absl::StrCat(kGet, kGet));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos);
  // Else a body would be taken for the next request.
  const std::string posted =
      Ask(absl::StrCat("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ", sizeof(kGet) - 1, "\r\n\r\n", kGet));
  EXPECT_EQ(posted.find("HTTP/1.1", 1), std::string::npos);
}

TEST_F(HttpServerTest, CompressesForWhoTakesIt) {
  const std::string text(10000, 'x');
  handler_ = [&](const HttpRequest&) { return Text(text); };
  const int port = Start();
  const auto answer = [&](const std::string& coding) {
    httplib::Client client("127.0.0.1", port);
    client.set_decompress(false);
    const httplib::Result result = client.Get("/", {{"Accept-Encoding", coding}});
    EXPECT_TRUE(result);
    return result ? *result : httplib::Response();
  };
  for (const char* coding : {"gzip", "deflate, gzip;q=1.0, br", "br, gzip"}) {
    const httplib::Response zipped = answer(coding);
    EXPECT_EQ(zipped.get_header_value("Content-Encoding"), "gzip") << coding;
    EXPECT_LT(zipped.body.size(), 1000u);
  }
  for (const char* coding : {"", "br", "identity", "gzip;q=0", "xgzip"}) {
    const httplib::Response plain = answer(coding);
    EXPECT_FALSE(plain.has_header("Content-Encoding")) << coding;
    EXPECT_EQ(plain.body, text);
    EXPECT_EQ(plain.get_header_value("Vary"), "Accept-Encoding");
  }
  httplib::Client client("127.0.0.1", port);
  EXPECT_EQ(client.Get("/", {{"Accept-Encoding", "gzip"}})->body, text);
}

TEST_F(HttpServerTest, EveryAnswerHasTheSecurityHeaders) {
  handler_ = [](const HttpRequest& request) {
    if (request.path == "/throw") throw std::runtime_error("secret");
    return ErrorResponse(404, "NOT_FOUND", "not here");
  };
  Start();
  const std::string long_target(9000, 'a');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"404", kGet},
      {"500", "GET /throw HTTP/1.1\r\n\r\n"},
      {"400", "nonsense\r\n\r\n"},
      {"400", "BREW / HTTP/1.1\r\n\r\n"},
      {"400", "GET / HTTP/9.9\r\n\r\n"},
      {"414", absl::StrCat("GET /", long_target, " HTTP/1.1\r\nHost: h\r\n\r\n")},
      {"416", "GET / HTTP/1.1\r\nRange: nonsense\r\n\r\n"},
  };
  for (const auto& [status, request] : cases) {
    const std::string answer = Ask(request);
    EXPECT_THAT(answer, StartsWith(absl::StrCat("HTTP/1.1 ", status))) << request;
    for (const auto& [name, value] : SecurityHeaders()) {
      EXPECT_THAT(answer, HasSubstr(absl::StrCat("\r\n", name, ": ", value, "\r\n"))) << request;
    }
    EXPECT_THAT(answer, HasSubstr("{\"error\":{\"code\":")) << request;
    EXPECT_FALSE(absl::StrContains(answer, "secret"));
    EXPECT_FALSE(absl::StrContains(answer, "Access-Control"));
  }
}

TEST_F(HttpServerTest, PartsOfAnAnswerCannotBeAskedForManyTimes) {
  Start();
  std::string ranges = "bytes=0-";
  while (ranges.size() < 7000) ranges += ",0-";
  const std::string answer = Ask(absl::StrCat("GET / HTTP/1.1\r\nHost: h\r\nRange: ", ranges, "\r\n\r\n"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, ::testing::EndsWith("\r\n\r\nhello"));
  EXPECT_THAT(answer, HasSubstr("Accept-Ranges: none\r\n"));
}

TEST_F(HttpServerTest, ARequestWithoutEndIsNotRead) {
  Start({.most_request_bytes = 4096});
  RawConnection connection(server_->port(), "GET / HTTP/1.1\r\n");
  size_t sent = 0;
  while (sent < (64 << 20) && connection.Send("X: 0123456789\r\n")) sent += 15;
  EXPECT_LT(sent, size_t{64} << 20);
}

TEST_F(HttpServerTest, WhoSendsNoWholeRequestInTimeIsCutOff) {
  Start({.request_time = absl::Milliseconds(50)});
  EXPECT_EQ(Ask("G"), "");
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: h"), ::testing::Not(HasSubstr(" 200 ")));
}

TEST_F(HttpServerTest, BytesThatTrickleInDoNotProlongTheTime) {
  Start({.request_time = absl::Milliseconds(200)});
  RawConnection connection(server_->port(), "GET / HTTP/1.1\r\n");
  while (connection.Send("X")) absl::SleepFor(absl::Milliseconds(5));  // ends, or the test times out
}

TEST_F(HttpServerTest, NorDoBytesOfAnEncryptedRecord) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/attune-http-server-test-", getpid());
  std::filesystem::create_directories(folder);
  const access::Issued issued = access::Authority("tests").Issue("localhost");
  std::ofstream(folder + "/cert.pem") << issued.certificate;
  std::ofstream(folder + "/key.pem") << issued.key;
  Start({.certificate = folder + "/cert.pem", .key = folder + "/key.pem", .request_time = absl::Milliseconds(200)});
  std::filesystem::remove_all(folder);
  // The head of a handshake record of 16 KiB, of which nothing can be read before it is whole.
  RawConnection connection(server_->port(), std::string("\x16\x03\x01\x40\x00", 5));
  int sent = 0;
  while (sent < 16'000 && connection.Send("X")) {
    ++sent;
    absl::SleepFor(absl::Milliseconds(2));
  }
  EXPECT_LT(sent, 8'000);
}

TEST_F(HttpServerTest, WhoDoesNotTakeTheAnswerIsCutOff) {
  const ContentPtr large = MakeContent("application/octet-stream", std::string(64 << 20, 'x'));
  handler_ = [&](const HttpRequest& request) {
    return request.path == "/large" ? HttpResponse{.content = large} : Text("hello");
  };
  Start({.threads = 1, .response_time = absl::Milliseconds(200)});
  RawConnection connection(server_->port(), "GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(Ask(kGet), ::testing::EndsWith("hello"));  // the only thread is free again
}

TEST_F(HttpServerTest, SlowClientsDoNotStopOthers) {
  Start({.threads = 4, .request_time = absl::Hours(1)});
  std::vector<std::unique_ptr<RawConnection>> slow;
  for (int i = 0; i < 3; ++i) slow.push_back(std::make_unique<RawConnection>(server_->port(), "GET / HT"));
  EXPECT_THAT(Ask(kGet), ::testing::EndsWith("hello"));
}

TEST_F(HttpServerTest, ConnectionsThatSendNothingTakeNoThread) {
  Start({.threads = 1, .request_time = absl::Hours(1)});
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (int i = 0; i < 20; ++i) idle.push_back(std::make_unique<RawConnection>(server_->port()));
  EXPECT_THAT(Ask(kGet), ::testing::EndsWith("hello"));
}

TEST_F(HttpServerTest, ConnectionsBeyondThoseThatWaitAreClosedAtOnce) {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  std::promise<void> entered;
  std::atomic<int> requests = 0;
  handler_ = [&](const HttpRequest&) {
    if (requests++ == 0) entered.set_value();
    released.wait();
    return Text("hello");
  };
  const int port = Start({.threads = 1, .most_waiting = 1});
  RawConnection answered(port, kGet);
  entered.get_future().wait();
  RawConnection waits(port, kGet);
  EXPECT_EQ(Ask(kGet), "");
  release.set_value();
  EXPECT_THAT(answered.ReadAll(), ::testing::EndsWith("hello"));
  EXPECT_THAT(waits.ReadAll(), ::testing::EndsWith("hello"));
}

TEST_F(HttpServerTest, EndsWithConnectionsOpen) {
  Start({.request_time = absl::Hours(1)});
  RawConnection half(server_->port(), "GET / HTTP");
  EXPECT_THAT(Ask(kGet), ::testing::EndsWith("hello"));  // the other has been accepted by now
  server_.reset();
  EXPECT_EQ(half.ReadAll(), "");
}

TEST_F(HttpServerTest, APortThatIsTakenIsAnError) {
  const int port = Start();
  const auto second = HttpServer::Bind({.port = port});
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("--listen is '127.0.0.1:", port, "': Address already in use; allowed: ")));
}

TEST_F(HttpServerTest, APortIsFreeAgainAfterwards) {
  const int port = Start();
  server_.reset();
  EXPECT_TRUE(HttpServer::Bind({.port = port}).ok());  // bound, and never served
  EXPECT_EQ(Start({.port = port}), port);
}

}  // namespace
}  // namespace attune::dashboard
