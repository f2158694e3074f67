// What bounds a kernel by Nsight Compute's counters, in words.
#ifndef ATTUNE_SERVER_CATALOG_BOUND_H_
#define ATTUNE_SERVER_CATALOG_BOUND_H_

#include <string>

#include "attune/v1/profile.pb.h"

namespace attune::catalog {

// A sentence with the figures in it, of the kernel that takes longest; empty without counters.
std::string BoundOf(const v1::Profile& profile);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_BOUND_H_
