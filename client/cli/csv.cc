#include "client/cli/csv.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace attune::cli {
namespace {

constexpr absl::string_view kParameters = "parameters";

std::string Field(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

Json ParametersOf(const Json& object) {
  const auto found = object.find(kParameters);
  return found != object.end() && found->is_object() ? *found : Json::object();
}

std::string FieldOf(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found == object.end() ? "" : Field(*found);
}

}  // namespace

std::vector<std::string> CsvLines(const std::vector<std::string>& columns, const std::vector<Json>& objects) {
  std::vector<std::string> parameters;  // in the order in which they come up
  for (const Json& object : objects) {
    const Json own = ParametersOf(object);
    for (const auto& [name, value] : own.items()) {
      if (std::find(parameters.begin(), parameters.end(), name) == parameters.end()) parameters.push_back(name);
    }
  }
  std::vector<std::string> names = columns;
  names.insert(names.end(), parameters.begin(), parameters.end());
  std::vector<std::string> lines = {absl::StrJoin(names, ",")};
  for (const Json& object : objects) {
    const Json own = ParametersOf(object);
    std::vector<std::string> fields;
    for (const std::string& name : columns) fields.push_back(FieldOf(object, name));
    for (const std::string& name : parameters) fields.push_back(FieldOf(own, name));
    lines.push_back(absl::StrJoin(fields, ","));
  }
  return lines;
}

}  // namespace attune::cli
