// The dashboard in front of a fake server, asked over real sockets.
#include "client/dashboard/dashboard_server.h"

#include <google/protobuf/util/json_util.h>
#include <httplib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/dashboard/api_table.h"
#include "client/testing/fake_access.h"
#include "client/testing/fake_attune.h"
#include "client/testing/fake_fleet.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/access/testing/authority.h"

namespace attune::dashboard {
namespace {

using attune::testing::FakeAttune;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class SetClock : public Clock {
 public:
  absl::Time Now() const override { return absl::FromUnixSeconds(seconds); }
  std::atomic<int64_t> seconds = 1'790'000'000;
};

class DashboardTest : public ::testing::Test {
 protected:
  DashboardTest() {
    options_.listen = "127.0.0.1:0";
    options_.server = server_->address();
    options_.version = "1.2.3";
    options_.clock = &clock_;
    ClientOptions client;
    client.retry.attempts = 1;
    client.retry.longest_wait = absl::Milliseconds(100);
    client.cache_capacity = 0;
    client.unreachable_hold = absl::ZeroDuration();
    client_ = *Client::Connect(server_->address(), client);
  }

  void Start() {
    auto dashboard = DashboardServer::Start(options_, client_.get());
    ASSERT_TRUE(dashboard.ok()) << dashboard.status();
    dashboard_ = *std::move(dashboard);
  }
  int port() const {
    const std::string url = dashboard_->url();
    return std::stoi(url.substr(url.rfind(':') + 1));
  }
  httplib::Response Get(const std::string& path, const httplib::Headers& headers = {}) {
    if (dashboard_ == nullptr) Start();
    httplib::Client http("127.0.0.1", port());
    const httplib::Result result = http.Get(path, headers);
    EXPECT_TRUE(result) << path;
    return result ? *result : httplib::Response();
  }
  Json GetJson(const std::string& path) { return Json::parse(Get(path).body); }
  // What the flags' mistakes are answered with.
  std::string StartError() {
    const auto dashboard = DashboardServer::Start(options_, client_.get());
    EXPECT_FALSE(dashboard.ok());
    return std::string(dashboard.status().message());
  }

  FakeAttune fake_;
  attune::testing::FakeAccess access_;
  std::unique_ptr<attune::testing::RunningServer> server_ =
      std::make_unique<attune::testing::RunningServer>(&fake_, "127.0.0.1:0", &access_);
  SetClock clock_;
  DashboardOptions options_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<DashboardServer> dashboard_;
};

TEST_F(DashboardTest, EveryResourceIsOneCallOfItsMethod) {
  const std::string problem = FakeAttune::kProblem;
  fake_.HasOperation(attune::testing::SucceededTuning());
  const std::map<std::string, std::string> queries = {{"best", "problem=" + problem},
                                                      {"explain", "trial=trials/1"},
                                                      {"operation", "name=operations/7"},
                                                      {"trial", "name=trials/1"}};
  for (const ApiResource& resource : ApiResources()) {
    if (resource.name == "hosts") continue;  // of another service, below
    const auto query = queries.find(std::string(resource.name));
    const httplib::Response response =
        Get(absl::StrCat("/api/", resource.name, query == queries.end() ? "" : "?" + query->second));
    EXPECT_EQ(response.status, 200) << resource.name << " " << response.body;
    EXPECT_EQ(fake_.calls(std::string(resource.method)), 1) << resource.name;
    EXPECT_EQ(response.get_header_value("Content-Type"), "application/json");
    EXPECT_TRUE(Json::parse(response.body).is_object());
  }
}

TEST_F(DashboardTest, HostsAreThoseOfTheFleet) {
  attune::testing::FakeFleet fleet;
  const attune::testing::RunningServer server(&fleet);
  client_ = *Client::Connect(server.address());
  const Json hosts = GetJson("/api/hosts")["hosts"];
  ASSERT_EQ(hosts.size(), 2);
  EXPECT_EQ(hosts[0]["name"], "hosts/a");
  EXPECT_EQ(hosts[0]["devices"].size(), 2);
  EXPECT_EQ(hosts[1]["state"], "STATE_LOST");
  dashboard_.reset();  // before the server
}

TEST_F(DashboardTest, AnswersInProtobufsOwnJson) {
  std::string expected;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(*client_->ListMisses({}), &expected).ok());
  EXPECT_EQ(Get("/api/misses").body, expected);
  EXPECT_THAT(expected, AllOf(HasSubstr("\"problemText\""), HasSubstr("\"count\":\"1234\"")));
}

TEST_F(DashboardTest, TheQueryReachesTheServer) {
  Get("/api/"
      "trials?filter.problem=b1.h1.q128.d64.f16&filter.verdicts=VERDICT_OK&filter.verdicts=VERDICT_CRASHED&page_size=7&"
      "view=TRIAL_VIEW_BASIC");
  const v1::ListTrialsRequest request = fake_.last_list_trials();
  EXPECT_EQ(request.filter().problem(), "b1.h1.q128.d64.f16");
  EXPECT_EQ(request.filter().verdicts_size(), 2);
  EXPECT_EQ(request.page_size(), 7);
  EXPECT_EQ(request.view(), v1::TRIAL_VIEW_BASIC);
  Get("/api/best?problem=b2.h8.q512.d64.f16&policy=POLICY_COLD");
  EXPECT_EQ(fake_.last_get_best().policy(), v1::POLICY_COLD);
  EXPECT_FALSE(fake_.last_get_best().include_artifact());
}

TEST_F(DashboardTest, ExplainTakesAProblemBesidesATrial) {
  EXPECT_EQ(Get(absl::StrCat("/api/explain?problem=", FakeAttune::kProblem, "&policy=POLICY_HOT")).status, 200);
  const httplib::Response both = Get(absl::StrCat("/api/explain?trial=trials/1&problem=", FakeAttune::kProblem));
  EXPECT_EQ(both.status, 400);
  EXPECT_EQ(fake_.calls("Explain"), 1);
}

TEST_F(DashboardTest, AWrongParameterIsNamedWithWhatIsAllowed) {
  const httplib::Response response = Get("/api/trials?page_siz=1");
  EXPECT_EQ(response.status, 400);
  const Json error = Json::parse(response.body)["error"];
  EXPECT_EQ(error["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(error["field"], "page_siz");
  EXPECT_EQ(error["value"], "1");
  EXPECT_THAT(error["allowed"].get<std::string>(), HasSubstr("page_size, page_token, filter.problem"));
  EXPECT_THAT(error["message"].get<std::string>(), StartsWith("page_siz is '1'; allowed: the parameters page_size"));
  for (const char* path : {"/api/trials?a=%zz", "/api/best?problem=b2&include_artifact=true", "/api/devices?x=1",
                           "/api/best?include_artifact=true", "/api/best?problem=b2.h8.q512.d64.f16&wait=60s"}) {
    EXPECT_EQ(Get(path).status, 400) << path;
  }
  EXPECT_EQ(fake_.calls("ListTrials") + fake_.calls("GetBest") + fake_.calls("ListDevices"), 0);
}

TEST_F(DashboardTest, HostileTextsInErrorsAreBoundedAndEscaped) {
  const httplib::Response response = Get("/api/%3Cscript%3E" + std::string(5000, 'x'));
  EXPECT_EQ(response.status, 404);
  EXPECT_LT(response.body.size(), 1500u);
  EXPECT_EQ(response.get_header_value("Content-Type"), "application/json");
  EXPECT_LT(Get("/api/trials?page_size=" + std::string(5000, 'x')).body.size(), 1500u);
}

TEST_F(DashboardTest, AnErrorOfTheServersIsItsStatusOfHttp) {
  const std::vector<std::pair<grpc::StatusCode, int>> cases = {
      {grpc::StatusCode::NOT_FOUND, 404},          {grpc::StatusCode::INVALID_ARGUMENT, 400},
      {grpc::StatusCode::UNAUTHENTICATED, 401},    {grpc::StatusCode::PERMISSION_DENIED, 403},
      {grpc::StatusCode::RESOURCE_EXHAUSTED, 429}, {grpc::StatusCode::UNAVAILABLE, 503},
      {grpc::StatusCode::DEADLINE_EXCEEDED, 504},  {grpc::StatusCode::INTERNAL, 500},
      {grpc::StatusCode::UNIMPLEMENTED, 501}};
  for (const auto& [code, status] : cases) {
    fake_.FailNext(1, attune::testing::RichError(code, "because", "REASON"));
    clock_.seconds += 10;
    const httplib::Response response = Get("/api/trends");
    EXPECT_EQ(response.status, status);
    const Json error = Json::parse(response.body)["error"];
    EXPECT_EQ(error["code"], absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
    EXPECT_EQ(error["reason"], "REASON");
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("because"));
    EXPECT_EQ(response.get_header_value("Cache-Control"), "no-store");
    EXPECT_FALSE(response.has_header("ETag"));
  }
}

TEST_F(DashboardTest, SaysSoWhenTheServerIsGoneAndWhenItIsBack) {
  EXPECT_EQ(Get("/api/trends").status, 200);
  EXPECT_EQ(GetJson("/api/status")["reachable"], true);
  const std::string address = server_->address();
  server_.reset();
  clock_.seconds += 10;
  const httplib::Response gone = Get("/api/trends");
  EXPECT_EQ(gone.status, 503);
  EXPECT_EQ(Json::parse(gone.body)["error"]["code"], "UNAVAILABLE");
  const Json status = GetJson("/api/status");
  EXPECT_EQ(status["reachable"], false);
  EXPECT_EQ(status["error"]["code"], "UNAVAILABLE");
  EXPECT_EQ(status["serverVersion"], nullptr);
  EXPECT_EQ(Get("/healthz").body, "ok\n");
  server_ = std::make_unique<attune::testing::RunningServer>(&fake_, address, &access_);
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  int back = 0;
  while (back != 200 && absl::Now() < deadline) {
    clock_.seconds += 10;
    back = Get("/api/trends").status;
  }
  EXPECT_EQ(back, 200);
  EXPECT_EQ(GetJson("/api/status")["reachable"], true);
}

TEST_F(DashboardTest, StatusSaysWhoIsWho) {
  const Json status = GetJson("/api/status");
  EXPECT_EQ(status["server"], server_->address());
  EXPECT_EQ(status["dashboardVersion"], "1.2.3");
  EXPECT_EQ(status["serverVersion"], client_->ListDevices()->server_version());
  EXPECT_EQ(status["caller"]["principal"], client_->GetCaller()->principal());
  EXPECT_EQ(status["error"], nullptr);
}

TEST_F(DashboardTest, StatusSaysWhatAServerThatIsReachedRefuses) {
  fake_.FailNext(1, {grpc::StatusCode::PERMISSION_DENIED, "not you"});
  const Json status = GetJson("/api/status");
  EXPECT_EQ(status["reachable"], true);
  EXPECT_EQ(status["error"]["code"], "PERMISSION_DENIED");
}

TEST_F(DashboardTest, HealthAsksNobody) {
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(fake_.calls("ListDevices") + fake_.calls("Ping"), 0);
}

TEST_F(DashboardTest, WhatTheBrowserHasIsNotSentAgain) {
  for (const char* path : {"/", "/chart.min.js", "/api/trends", "/api/status"}) {
    const httplib::Response first = Get(path);
    EXPECT_EQ(first.get_header_value("Cache-Control"), "no-cache");
    const std::string etag = first.get_header_value("ETag");
    ASSERT_THAT(etag, StartsWith("W/\"")) << path;
    for (const std::string& known : {etag, etag.substr(2), "\"other\", " + etag, std::string("*")}) {
      const httplib::Response again = Get(path, {{"If-None-Match", known}});
      EXPECT_EQ(again.status, 304) << path;
      EXPECT_EQ(again.body, "");
      EXPECT_EQ(again.get_header_value("ETag"), etag);
      EXPECT_FALSE(again.has_header("Content-Length"));
    }
    EXPECT_EQ(Get(path, {{"If-None-Match", "W/\"other\""}}).status, 200);
  }
  EXPECT_NE(Get("/api/trends").get_header_value("ETag"), Get("/api/misses").get_header_value("ETag"));
}

TEST_F(DashboardTest, RequestsForTheSameShareACallForASecond) {
  Get("/api/trials?page_size=3&filter.problem=x");
  Get("/api/trials?filter.problem=x&page_size=3");  // the same in other words
  Get("/api/trials?filter.problem=%78&page_size=3");
  EXPECT_EQ(fake_.calls("ListTrials"), 1);
  Get("/api/trials?page_size=4&filter.problem=x");
  EXPECT_EQ(fake_.calls("ListTrials"), 2);
  clock_.seconds += 1;
  Get("/api/trials?page_size=3&filter.problem=x");
  EXPECT_EQ(fake_.calls("ListTrials"), 3);
}

// Answers no trends before it is told to.
class HeldAttune : public FakeAttune {
 public:
  grpc::Status ListTrends(grpc::ServerContext*, const v1::ListTrendsRequest*, v1::ListTrendsResponse*) override {
    asked.set_value();
    answer.get_future().wait();
    return grpc::Status::OK;
  }
  std::promise<void> asked;
  std::promise<void> answer;
};

TEST_F(DashboardTest, AServerThatDoesNotAnswerLeavesThreadsForThePages) {
  HeldAttune held;
  const attune::testing::RunningServer server(&held);
  const std::unique_ptr<Client> client = *Client::Connect(server.address());
  options_.http.threads = 2;
  dashboard_ = *DashboardServer::Start(options_, client.get());
  std::thread waits([this] { EXPECT_EQ(Get("/api/trends").status, 200); });
  held.asked.get_future().wait();
  const httplib::Response busy = Get("/api/trends");
  EXPECT_EQ(busy.status, 503);
  EXPECT_THAT(busy.body, HasSubstr("1 requests wait"));
  EXPECT_EQ(Get("/").status, 200);
  held.answer.set_value();
  waits.join();
  EXPECT_EQ(Get("/api/trends").status, 200);  // the same answer still
  dashboard_.reset();
}

TEST_F(DashboardTest, OnlyReadsAreAnswered) {
  Start();
  httplib::Client http("127.0.0.1", port());
  for (const httplib::Result& result :
       {http.Post("/api/trends", "x", "text/plain"), http.Put("/", "x", "text/plain"), http.Delete("/api/trends"),
        http.Patch("/", "x", "text/plain"), http.Options("/api/trends")}) {
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 405);
    EXPECT_EQ(result->get_header_value("Allow"), "GET, HEAD");
  }
  const httplib::Result head = http.Head("/api/trends");
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(head->get_header_value("ETag"), Get("/api/trends").get_header_value("ETag"));
}

TEST_F(DashboardTest, OtherPagesOfABrowserGetNothing) {
  Start();
  const std::vector<httplib::Headers> hostile = {
      {{"Host", "evil.example"}},
      {{"Host", absl::StrCat("evil.example:", port())}},
      {{"Origin", "http://evil.example"}},
      {{"Origin", "null"}},
      {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "no-cors"}, {"Sec-Fetch-Dest", "script"}},
      {{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "cors"}, {"Sec-Fetch-Dest", "empty"}},
      {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}, {"Sec-Fetch-Dest", "iframe"}},
  };
  for (const httplib::Headers& headers : hostile) {
    for (const char* path : {"/", "/api/trends", "/healthz", "/chart.min.js"}) {
      const httplib::Response response = Get(path, headers);
      EXPECT_THAT(response.status, ::testing::AnyOf(403, 421)) << path << " " << headers.begin()->second;
      EXPECT_THAT(response.body, Not(HasSubstr("trends\":")));
    }
  }
  EXPECT_EQ(fake_.calls("ListTrends"), 0);
  EXPECT_EQ(Get("/api/trends", {{"Origin", absl::StrCat("http://localhost:", port())}}).status, 200);
}

TEST_F(DashboardTest, ThroughATunnelItHasTheNameThatItIsTold) {
  options_.host_names = {"localhost:9000"};
  EXPECT_EQ(Get("/", {{"Host", "localhost:9000"}, {"Origin", "http://localhost:9000"}}).status, 200);
  EXPECT_EQ(Get("/", {{"Host", "localhost:9001"}}).status, 421);
}

TEST_F(DashboardTest, ListensWhereOtherHostsReachItOnlyWithTlsAndAPassword) {
  for (const char* listen : {"0.0.0.0:0", "[::]:0", "10.0.0.1:0"}) {
    options_.listen = listen;
    EXPECT_THAT(StartError(), AllOf(HasSubstr(absl::StrCat("--listen is '", listen, "'")),
                                    HasSubstr("allowed: 127.0.0.1"), HasSubstr("--https-cert")));
  }
  options_.certificate = "c.pem";
  EXPECT_THAT(StartError(), HasSubstr("--https-key is ''; allowed: both"));
  options_.key = "k.pem";
  EXPECT_THAT(StartError(), HasSubstr("--password-file"));
  options_.password_file = "/nowhere";
  EXPECT_THAT(StartError(), HasSubstr("--password-file is '/nowhere'"));
  options_.listen = "0.0.0.0:0";
  EXPECT_THAT(StartError(), HasSubstr("--host-name"));
}

TEST_F(DashboardTest, AWrongFlagIsNamed) {
  options_.host_names = {"a/b"};
  EXPECT_THAT(StartError(), HasSubstr("--host-name is 'a/b'; allowed: "));
  options_.host_names.clear();
  options_.certificate = "/nowhere.pem";
  options_.key = "/nowhere.pem";
  EXPECT_THAT(StartError(), HasSubstr("--https-cert is '/nowhere.pem'"));
}

class SecretDashboardTest : public DashboardTest {
 protected:
  SecretDashboardTest() {
    std::filesystem::create_directories(directory_);
    const access::Issued issued = access::Authority("tests").Issue("localhost");
    options_.certificate = Write("cert.pem", issued.certificate);
    options_.key = Write("key.pem", issued.key);
    options_.password_file = Write("password", "correct horse staple\n");
  }
  ~SecretDashboardTest() override { std::filesystem::remove_all(directory_); }
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = absl::StrCat(directory_, "/", name);
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    return path;
  }

  const std::string directory_ = absl::StrCat(::testing::TempDir(), "/attune-dashboard-test-", getpid());
};

TEST_F(SecretDashboardTest, AsksForThePasswordOverTls) {
  options_.listen = "0.0.0.0:0";
  options_.host_names = {"127.0.0.1"};
  Start();
  EXPECT_THAT(dashboard_->url(), StartsWith("https://127.0.0.1:"));
  httplib::SSLClient https("127.0.0.1", port());
  https.enable_server_certificate_verification(false);
  EXPECT_EQ(https.Get("/healthz")->status, 200);
  for (const char* path : {"/", "/api/trends", "/chart.min.js"}) {
    const httplib::Result refused = https.Get(path);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 401);
    EXPECT_THAT(refused->get_header_value("WWW-Authenticate"), StartsWith("Basic "));
  }
  https.set_basic_auth("me", "incorrect horse");
  EXPECT_EQ(https.Get("/api/trends")->status, 401);
  EXPECT_EQ(fake_.calls("ListTrends"), 0);
  https.set_basic_auth("me", "correct horse staple");
  EXPECT_EQ(https.Get("/api/trends")->status, 200);
  EXPECT_EQ(https.Get("/chart.min.js")->body.size(), std::filesystem::file_size(ATTUNE_CHART));
}

TEST_F(SecretDashboardTest, WhoSpeaksInClearToTlsGetsNothing) {
  Start();
  httplib::Client http("127.0.0.1", port());
  EXPECT_FALSE(http.Get("/healthz"));
}

TEST_F(SecretDashboardTest, APasswordIsAskedForOnThisHostToo) {
  options_.certificate.clear();
  options_.key.clear();
  EXPECT_EQ(Get("/").status, 401);
  EXPECT_EQ(Get("/", {httplib::make_basic_authentication_header("", "correct horse staple")}).status, 200);
}

}  // namespace
}  // namespace attune::dashboard
