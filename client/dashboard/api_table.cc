#include "client/dashboard/api_table.h"

#include <algorithm>
#include <utility>

namespace attune::dashboard {
namespace {

using google::protobuf::Message;

template <typename Response>
absl::StatusOr<MessagePtr> Owned(absl::StatusOr<Response> response) {
  if (!response.ok()) return response.status();
  return std::make_unique<Response>(*std::move(response));
}

template <typename Request, typename Response>
ApiResource Takes(absl::string_view name, absl::string_view method,
                  absl::StatusOr<Response> (Client::*call)(const Request&), QueryRules rules = {}) {
  return {name, method, &Request::default_instance(), std::move(rules), [call](Client& client, const Message& request) {
            return Owned((client.*call)(static_cast<const Request&>(request)));
          }};
}

// Of one thing, by its name.
template <typename Request, typename Response>
ApiResource TakesName(absl::string_view name, absl::string_view method,
                      absl::StatusOr<Response> (Client::*call)(const std::string&)) {
  return {name, method, &Request::default_instance(), {}, [call](Client& client, const Message& request) {
            return Owned((client.*call)(static_cast<const Request&>(request).name()));
          }};
}

template <typename Request, typename Response>
ApiResource TakesNothing(absl::string_view name, absl::string_view method, absl::StatusOr<Response> (Client::*call)()) {
  return {name, method, &Request::default_instance(), {}, [call](Client& client, const Message&) {
            return Owned((client.*call)());
          }};
}

absl::StatusOr<MessagePtr> Best(Client& client, const Message& message) {
  const auto& request = static_cast<const v1::GetBestRequest&>(message);
  const absl::StatusOr<Problem> problem = FromProto(request.problem());
  if (!problem.ok()) return problem.status();
  BestQuery query{.problem = *problem, .device_id = request.device_id(), .include_domains = request.include_domains()};
  if (request.policy() != v1::POLICY_UNSPECIFIED) query.policy = request.policy();
  query.objective = request.objective();
  for (const int provenance : request.acceptable()) query.acceptable.push_back(static_cast<v1::Provenance>(provenance));
  absl::StatusOr<AnswerPtr> answer = client.GetBest(query);
  if (!answer.ok()) return answer.status();
  return std::make_unique<v1::GetBestResponse>(**answer);
}

// Neither an artifact's bytes nor a wait for the compiler is for a page.
const QueryRules kBestRules = {.refused = {"include_artifact", "wait"}};
const QueryRules kExplainRules = {
    .aliases = {{"problem", "best.problem"}, {"device_id", "best.device_id"}, {"policy", "best.policy"}},
    .refused = {"best.include_artifact", "best.wait", "best.include_domains"}};

}  // namespace

const std::vector<ApiResource>& ApiResources() {
  static const std::vector<ApiResource> resources = {
      Takes("baselines", "ListBaselines", &Client::ListBaselines),
      {"best", "GetBest", &v1::GetBestRequest::default_instance(), kBestRules, Best},
      Takes("compare", "CompareTimes", &Client::CompareTimes),
      TakesNothing<v1::ListDevicesRequest>("devices", "ListDevices", &Client::ListDevices),
      Takes("explain", "Explain", &Client::Explain, kExplainRules),
      TakesNothing<v1::ListKernelFamiliesRequest>("families", "ListKernelFamilies", &Client::ListKernelFamilies),
      TakesNothing<v1::ListHostsRequest>("hosts", "ListHosts", &Client::ListHosts),
      Takes("incumbents", "ListIncumbents", &Client::ListIncumbents),
      Takes("misses", "ListMisses", &Client::ListMisses),
      TakesName<v1::GetOperationRequest>("operation", "GetOperation", &Client::GetOperation),
      Takes("operations", "ListOperations", &Client::ListOperations),
      Takes("retimings", "ListRetimings", &Client::ListRetimings),
      Takes("submissions", "ListSubmissions", &Client::ListSubmissions),
      Takes("trends", "ListTrends", &Client::ListTrends),
      TakesName<v1::GetTrialRequest>("trial", "GetTrial", &Client::GetTrial),
      Takes("trials", "ListTrials", &Client::ListTrials),
  };
  return resources;
}

const ApiResource* FindApiResource(absl::string_view name) {
  const std::vector<ApiResource>& all = ApiResources();
  const auto found = std::find_if(all.begin(), all.end(), [&](const ApiResource& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace attune::dashboard
