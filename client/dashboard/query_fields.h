// The query of a URL as the fields of a request message: "filter.problem=b2.h8...&page_size=50".
#ifndef ATTUNE_CLIENT_DASHBOARD_QUERY_FIELDS_H_
#define ATTUNE_CLIENT_DASHBOARD_QUERY_FIELDS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace attune::dashboard {

// What is wrong with one parameter.
struct FieldError {
  std::string field;
  std::string value;
  std::string allowed;
};

// In its order, decoded; nullopt when an escape is none, or the text is not UTF-8.
using Query = std::vector<std::pair<std::string, std::string>>;
std::optional<Query> ParseQuery(absl::string_view text);

// How a resource's query differs from its request message.
struct QueryRules {
  // Short names of nested fields: {"problem", "best.problem"}.
  std::vector<std::pair<absl::string_view, absl::string_view>> aliases = {};
  // Fields that nobody may set.
  std::vector<absl::string_view> refused = {};
};

// Sets each parameter's field of `message` through its descriptor. Names are those of the .proto files, nested ones
// joined by dots; a repeated field may be given again. A problem is its canonical text, a time RFC 3339 and a duration
// "3.5s". The first parameter that is unknown, is given twice, contradicts another of its oneof, or has a value that
// the field cannot hold is an error.
std::optional<FieldError> SetFields(const Query& query, const QueryRules& rules, google::protobuf::Message* message);

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_QUERY_FIELDS_H_
