#include "client/cli/json_values.h"

#include "client/cli/text.h"

namespace attune::cli {

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json MillisOrNull(double us) { return PositiveOrNull(us / 1000); }

Json SecondsOrNull(bool known, const google::protobuf::Duration& duration) {
  return known ? Json(absl::ToDoubleSeconds(FromProto(duration))) : Json();
}

Json ClaimJson(bool known, const v1::SearchClaim& claim) {
  if (!known) return Json();
  return {{"within", claim.within()},
          {"confidence", claim.confidence()},
          {"tried", claim.tried()},
          {"variants", claim.of()}};
}

}  // namespace attune::cli
