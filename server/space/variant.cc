#include <algorithm>
#include <charconv>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/attune/quote.h"
#include "server/space/space.h"

namespace attune::space {
namespace {

std::string Allowed(const family::v1::Parameter& parameter) { return absl::StrJoin(parameter.values(), " "); }

}  // namespace

std::string Variant::ToText() const {
  std::string text = absl::StrCat(family->name(), ":");
  for (size_t i = 0; i < values.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", family->manifest.parameters(static_cast<int>(i)).name(), "=", values[i]);
  }
  return text;
}

v1::Variant Variant::ToProto() const {
  v1::Variant proto;
  proto.set_family(family->name());
  for (size_t i = 0; i < values.size(); ++i) {
    v1::ParameterValue& value = *proto.add_parameters();
    value.set_name(family->manifest.parameters(static_cast<int>(i)).name());
    value.set_value(values[i]);
  }
  proto.set_text(ToText());
  return proto;
}

absl::StatusOr<Variant> ParseVariant(absl::string_view text,
                                     const std::vector<std::shared_ptr<const Family>>& families) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const auto family = std::find_if(families.begin(), families.end(),
                                   [&](const auto& candidate) { return candidate->name() == parts.first; });
  if (family == families.end()) {
    return absl::NotFoundError(
        absl::StrCat("variant ", Quoted(text), ": family ", Quoted(parts.first),
                     " is unknown; available: ", absl::StrJoin(families, ", ", [](std::string* out, const auto& known) {
                       absl::StrAppend(out, known->name());
                     })));
  }
  const auto invalid = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("variant ", Quoted(text), ": ", what...));
  };
  std::map<std::string, int64_t> given;
  for (absl::string_view assignment : absl::StrSplit(parts.second, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(assignment, absl::MaxSplits('=', 1));
    int64_t value = 0;
    const char* const end = pair.second.data() + pair.second.size();
    const auto [stop, error] = std::from_chars(pair.second.data(), end, value);
    if (error != std::errc() || stop != end || pair.second.empty()) {
      return invalid(Quoted(assignment), " is not NAME=NUMBER");
    }
    if (!given.emplace(pair.first, value).second)
      return invalid(Printable(pair.first.substr(0, kMostQuoted)), " is given twice");
  }
  Variant variant{*family, {}};
  for (const family::v1::Parameter& parameter : (*family)->manifest.parameters()) {
    const auto it = given.find(parameter.name());
    if (it == given.end() && parameter.has_when_absent()) {
      variant.values.push_back(parameter.when_absent());
      continue;
    }
    if (it == given.end()) return invalid(parameter.name(), " is missing; allowed: ", Allowed(parameter));
    if (std::find(parameter.values().begin(), parameter.values().end(), it->second) == parameter.values().end()) {
      return invalid(parameter.name(), " is ", it->second, "; allowed: ", Allowed(parameter));
    }
    variant.values.push_back(it->second);
    given.erase(it);
  }
  if (!given.empty()) {
    return invalid(Quoted(given.begin()->first), " is not a parameter of ", (*family)->name(), "; available: ",
                   absl::StrJoin((*family)->manifest.parameters(), " ",
                                 [](std::string* out, const auto& known) { absl::StrAppend(out, known.name()); }));
  }
  return variant;
}

}  // namespace attune::space
