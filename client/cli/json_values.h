// JSON as `--format=json` prints it: its text, and values that are null where they are not known.
#ifndef ATTUNE_CLIENT_CLI_JSON_VALUES_H_
#define ATTUNE_CLIENT_CLI_JSON_VALUES_H_

#include <nlohmann/json.hpp>
#include <string>

#include "attune/v1/service.pb.h"
#include "google/protobuf/duration.pb.h"

namespace attune::cli {

using Json = nlohmann::ordered_json;

// One line, or with an `indent` several. ASCII only: what others wrote (a compiler's log, a baseline's note) holds no
// control character that a terminal would act on, and bytes that are not UTF-8 become U+FFFD.
std::string JsonText(const Json& json, int indent = -1);

// Null for what the server leaves empty, or at 0, when it does not know it.
Json TextOrNull(const std::string& text);
template <typename Number>
Json PositiveOrNull(Number number) {
  return number > 0 ? Json(number) : Json();
}
// Microseconds as milliseconds.
Json MillisOrNull(double us);
Json SecondsOrNull(bool known, const google::protobuf::Duration& duration);
Json ClaimJson(bool known, const v1::SearchClaim& claim);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_JSON_VALUES_H_
