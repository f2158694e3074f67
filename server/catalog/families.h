// Which kernel families serve which purpose on a device.
#ifndef ATTUNE_SERVER_CATALOG_FAMILIES_H_
#define ATTUNE_SERVER_CATALOG_FAMILIES_H_

#include <memory>
#include <string>
#include <vector>

#include "attune/family/v1/family.pb.h"
#include "attune/v1/device.pb.h"
#include "server/space/family.h"

namespace attune::catalog {

// The families of `role` for a backend; of those named in `names`, when it is not empty.
std::vector<std::shared_ptr<const space::Family>> FamiliesFor(
    const std::vector<std::shared_ptr<const space::Family>>& families, v1::Backend backend, family::v1::Role role,
    const std::vector<std::string>& names = {});

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_FAMILIES_H_
