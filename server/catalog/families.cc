#include "server/catalog/families.h"

#include <algorithm>

namespace attune::catalog {

std::vector<std::shared_ptr<const space::Family>> FamiliesFor(
    const std::vector<std::shared_ptr<const space::Family>>& families, v1::Backend backend, family::v1::Role role,
    const std::vector<std::string>& names) {
  std::vector<std::shared_ptr<const space::Family>> some;
  for (const std::shared_ptr<const space::Family>& family : families) {
    const family::v1::Role own =
        family->manifest.role() == family::v1::ROLE_UNSPECIFIED ? family::v1::ROLE_SEARCH : family->manifest.role();
    if (own != role || family->manifest.backend() != backend) continue;
    if (!names.empty() && std::find(names.begin(), names.end(), family->name()) == names.end()) continue;
    some.push_back(family);
  }
  return some;
}

}  // namespace attune::catalog
