#include "client/cli/what_differs.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace attune::cli {
namespace {

struct Parts {
  std::string family;
  std::vector<std::string> parameters;  // "VEC=4"
};

Parts Split(const std::string& variant) {
  const std::pair<std::string, std::string> halves = absl::StrSplit(variant, absl::MaxSplits(':', 1));
  return {halves.first, absl::StrSplit(halves.second, ',', absl::SkipEmpty())};
}

}  // namespace

std::vector<std::string> WhatDiffers(const std::vector<std::string>& variants) {
  std::map<std::string, std::set<std::string>> of_family;          // its variants
  std::map<std::string, std::map<std::string, size_t>> how_often;  // of a family: variants with the parameter
  for (const std::string& variant : std::set<std::string>(variants.begin(), variants.end())) {
    if (variant.empty()) continue;
    const Parts parts = Split(variant);
    of_family[parts.family].insert(variant);
    for (const std::string& parameter : parts.parameters) ++how_often[parts.family][parameter];
  }
  std::vector<std::string> shortened;
  for (const std::string& variant : variants) {
    const Parts parts = Split(variant);
    const size_t siblings = variant.empty() ? 0 : of_family[parts.family].size();
    if (siblings < 2) {  // nothing in it tells it from another
      shortened.push_back(variant);
      continue;
    }
    std::vector<absl::string_view> own;
    for (const std::string& parameter : parts.parameters) {
      if (how_often[parts.family][parameter] < siblings) own.push_back(parameter);
    }
    const bool whole = own.size() == parts.parameters.size();
    const std::string family = of_family.size() > 1 ? absl::StrCat(parts.family, ":") : "";
    shortened.push_back(absl::StrCat(family, whole && !family.empty() ? "" : "...", absl::StrJoin(own, ",")));
  }
  return shortened;
}

}  // namespace attune::cli
