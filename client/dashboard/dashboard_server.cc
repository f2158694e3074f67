#include "client/dashboard/dashboard_server.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cpp/status.h"
#include "client/dashboard/api_table.h"
#include "client/dashboard/errors.h"
#include "client/dashboard/listen_address.h"
#include "proto/attune/quote.h"

namespace attune::dashboard {
namespace {

using google::protobuf::Message;

constexpr size_t kMostAnswers = 128;  // shared at a time
constexpr size_t kMostAnswerBytes = 64 << 20;
constexpr absl::string_view kApi = "/api/";

std::string JsonOf(const Message& message) {
  std::string json;
  // Of a message that was parsed it cannot fail.
  return google::protobuf::util::MessageToJsonString(message, &json).ok() ? json : "{}";
}

bool HasEtag(const HttpRequest& request, absl::string_view etag) {
  for (absl::string_view known : absl::StrSplit(request.header("If-None-Match"), ',')) {
    known = absl::StripAsciiWhitespace(known);
    if (known == "*" || known == etag || known == absl::StripPrefix(etag, "W/")) return true;
  }
  return false;
}

HttpResponse UnknownPath(absl::string_view path) {
  std::vector<absl::string_view> names = {"status"};
  for (const ApiResource& resource : ApiResources()) names.push_back(resource.name);
  return ErrorResponse(
      404, "NOT_FOUND",
      absl::StrCat("the path is ", Quoted(path), "; allowed: /, the pages' files, /healthz, and /api/ with ",
                   absl::StrJoin(names, ", ")));
}

absl::Status CheckAccess(const DashboardOptions& options, const ListenAddress& address) {
  if (options.certificate.empty() != options.key.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--https-cert is ", Quoted(options.certificate),
                                                   " and --https-key is ", Quoted(options.key),
                                                   "; allowed: both, or neither"));
  }
  if (address.loopback) return absl::OkStatus();
  if (options.certificate.empty() || options.password_file.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen is ", Quoted(options.listen),
        ", which other hosts reach; allowed: 127.0.0.1, localhost and [::1], and others with --https-cert, "
        "--https-key and --password-file"));
  }
  if (address.any && options.host_names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--listen is ", Quoted(options.listen),
                                                   " without --host-name; allowed: with the names that browsers use"));
  }
  return absl::OkStatus();
}

}  // namespace

DashboardServer::DashboardServer(const DashboardOptions& options, Client* client)
    : options_(options),
      client_(client),
      most_api_calls_(std::max<size_t>(1, options.http.threads * 3 / 4)),
      pages_(options.web_root),
      cache_(options.clock, options.share_for, kMostAnswers, kMostAnswerBytes) {}

absl::StatusOr<std::unique_ptr<DashboardServer>> DashboardServer::Start(const DashboardOptions& options,
                                                                        Client* client) {
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(options.listen);
  if (!address.ok()) return address.status();
  if (absl::Status status = CheckAccess(options, *address); !status.ok()) return status;
  for (const std::string& name : options.host_names) {
    if (absl::Status status = CheckHostName(name); !status.ok()) return status;
  }
  if (!options.web_root.empty() && !std::filesystem::is_directory(options.web_root)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--web-root is ", Quoted(options.web_root), "; allowed: a folder with the pages"));
  }
  std::unique_ptr<DashboardServer> dashboard(new DashboardServer(options, client));
  if (!options.password_file.empty()) {
    absl::StatusOr<Password> password = Password::Read(options.password_file);
    if (!password.ok()) return password.status();
    dashboard->password_ = *std::move(password);
  }
  HttpServerOptions http = options.http;
  http.ip = address->ip;
  http.port = address->port;
  http.certificate = options.certificate;
  http.key = options.key;
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Bind(http);
  if (!server.ok()) return server.status();

  const int port = (*server)->port();
  std::vector<std::string> names = options.host_names;
  if (!address->any) names.push_back(HostAndPort(address->ip, port));
  dashboard->host_ =
      address->any ? absl::StrCat(options.host_names.front(), ":", port) : HostAndPort(address->ip, port);
  dashboard->guard_ = std::make_unique<Guard>(!options.certificate.empty(), port, names);
  dashboard->http_ = *std::move(server);
  dashboard->http_->Serve([raw = dashboard.get()](const HttpRequest& request) { return raw->Handle(request); });
  return dashboard;
}

std::string DashboardServer::url() const {
  return absl::StrCat(options_.certificate.empty() ? "http://" : "https://", host_, "/");
}

HttpResponse DashboardServer::Handle(const HttpRequest& request) {
  HttpResponse response = Answer(request);
  const bool fresh = response.status == 200;
  response.headers.emplace_back("Cache-Control", fresh ? "no-cache" : "no-store");
  if (!fresh || response.content == nullptr) return response;
  response.headers.emplace_back("ETag", response.content->etag);
  if (HasEtag(request, response.content->etag)) {
    response.status = 304;
    response.content = nullptr;
  }
  return response;
}

HttpResponse DashboardServer::Answer(const HttpRequest& request) {
  if (std::optional<HttpResponse> refusal = guard_->Refuse(request); refusal.has_value()) return *std::move(refusal);
  if (request.method != "GET" && request.method != "HEAD") {
    HttpResponse response = ErrorResponse(
        405, "METHOD_NOT_ALLOWED", absl::StrCat("the method is ", Quoted(request.method), "; allowed: GET, HEAD"));
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (request.path == "/healthz") return {.content = MakeContent("text/plain; charset=utf-8", "ok\n")};
  if (password_.has_value() && !password_->Matches(request)) return Password::Ask();
  if (absl::StartsWith(request.path, kApi)) {
    const size_t before = api_calls_++;
    const absl::Cleanup done = [this] { --api_calls_; };
    if (before < most_api_calls_) return Api(request.path.substr(kApi.size()), request.query);
    return ErrorResponse(
        absl::UnavailableError(absl::StrCat(most_api_calls_, " requests wait for the server already")));
  }
  ContentPtr page = pages_.Find(request.path);
  return page == nullptr ? UnknownPath(request.path) : HttpResponse{.content = std::move(page)};
}

HttpResponse DashboardServer::Api(const std::string& name, const std::string& query_text) {
  if (name == "status") return cache_.Get(name, [this] { return Status(); });
  const ApiResource* resource = FindApiResource(name);
  if (resource == nullptr) return UnknownPath(absl::StrCat(kApi, name));
  const std::optional<Query> query = ParseQuery(query_text);
  if (!query.has_value()) {
    return ErrorResponse(
        FieldError{"query", query_text, "NAME=VALUE&..., of UTF-8 without control characters, escaped as %2B"});
  }
  const MessagePtr request(resource->request->New());
  if (std::optional<FieldError> error = SetFields(*query, resource->rules, request.get()); error.has_value()) {
    return ErrorResponse(*error);
  }
  return cache_.Get(absl::StrCat(name, "?", request->SerializeAsString()), [&] {
    const absl::StatusOr<MessagePtr> answer = resource->call(*client_, *request);
    if (!answer.ok()) return ErrorResponse(answer.status());
    return HttpResponse{.content = MakeContent(kJson, JsonOf(**answer))};
  });
}

HttpResponse DashboardServer::Status() {
  const absl::StatusOr<v1::ListDevicesResponse> devices = client_->ListDevices();
  nlohmann::json status = {
      {"server", Printable(options_.server)},
      {"serverVersion", devices.ok() ? nlohmann::json(devices->server_version()) : nlohmann::json()},
      {"dashboardVersion", options_.version},
      {"reachable", !IsUnreachable(devices.status())},
      {"caller", nullptr},
      {"error", nullptr}};
  absl::Status error = devices.status();
  if (!IsUnreachable(error)) {
    const absl::StatusOr<v1::Caller> caller = client_->GetCaller();
    if (caller.ok()) status["caller"] = nlohmann::json::parse(JsonOf(*caller));
    if (error.ok() && !absl::IsUnimplemented(caller.status())) error = caller.status();  // one of before it had roles
  }
  if (!error.ok()) {
    status["error"] = {{"code", absl::StatusCodeToString(error.code())}, {"message", ErrorLine(error.message())}};
  }
  return {.content = MakeContent(kJson, status.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace))};
}

}  // namespace attune::dashboard
