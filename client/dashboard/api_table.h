// The table of /api/: which RPC answers which resource, and what its query may say.
#ifndef ATTUNE_CLIENT_DASHBOARD_API_TABLE_H_
#define ATTUNE_CLIENT_DASHBOARD_API_TABLE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/client.h"
#include "client/dashboard/query_fields.h"
#include "google/protobuf/message.h"

namespace attune::dashboard {

using MessagePtr = std::unique_ptr<google::protobuf::Message>;

struct ApiResource {
  absl::string_view name;                    // "trends" of /api/trends
  absl::string_view method;                  // "ListTrends"
  const google::protobuf::Message* request;  // what is asked when the query says nothing; never changed
  QueryRules rules;
  // `request` is of the type above.
  std::function<absl::StatusOr<MessagePtr>(Client& client, const google::protobuf::Message& request)> call;
};

// By name. All of them only read.
const std::vector<ApiResource>& ApiResources();
// Null when there is none of the name.
const ApiResource* FindApiResource(absl::string_view name);

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_API_TABLE_H_
