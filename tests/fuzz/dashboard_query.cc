// What a browser sends the dashboard: a URL's query as a request's fields, and the headers that say who asks.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "client/dashboard/api_table.h"
#include "client/dashboard/guard.h"
#include "client/dashboard/listen_address.h"
#include "client/dashboard/query_fields.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

void ReadFields(const dashboard::Query& query, const dashboard::ApiResource& resource) {
  const dashboard::MessagePtr request(resource.request->New());
  const auto error = dashboard::SetFields(query, resource.rules, request.get());
  if (error.has_value()) {
    Expect(!error->allowed.empty(), "an error says what is allowed");
    const auto is_the_one = [&](const auto& parameter) {
      return parameter.first == error->field && parameter.second == error->value;
    };
    Expect(std::any_of(query.begin(), query.end(), is_the_one), "an error names a parameter that is there");
    return;
  }
  Expect(query.empty() || request->GetDescriptor()->field_count() > 0, "what has no fields takes no parameters");
  const dashboard::MessagePtr sent(resource.request->New());
  Expect(sent->ParseFromString(request->SerializeAsString()), "what is set can be sent");
  if (resource.name == "best") {
    const auto& best = static_cast<const v1::GetBestRequest&>(*request);
    Expect(!best.include_artifact() && !best.has_wait(), "a page asks for no artifact and waits for none");
  }
}

ATTUNE_FUZZ_TARGET(dashboard_query) {
  if (const auto query = dashboard::ParseQuery(input); query.has_value()) {
    for (const dashboard::ApiResource& resource : dashboard::ApiResources()) ReadFields(*query, resource);
  }
  const std::string text(input);
  static const dashboard::Guard guard(false, 7412, {"gpu7"});
  const bool let_in = !guard.Refuse({.headers = {{"Host", text}}}).has_value();
  Expect(!let_in || absl::EndsWith(text, ":7412"), "a Host that is let in has the port");
  const bool same = !guard.Refuse({.headers = {{"Host", "localhost:7412"}, {"Origin", text}}}).has_value();
  Expect(!same || absl::StartsWith(text, "http://"), "an Origin that is let in has the scheme");
  const auto address = dashboard::ParseListenAddress(input);
  if (!address.ok())
    return ExpectRefusal(address.status(), absl::StatusCode::kInvalidArgument, {"--listen", "allowed"});
  const auto again = dashboard::ParseListenAddress(dashboard::HostAndPort(address->ip, address->port));
  Expect(again.ok() && again->loopback == address->loopback && again->any == address->any, "an address reads back");
}

}  // namespace
}  // namespace attune::fuzz
