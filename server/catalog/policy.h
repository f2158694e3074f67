// The timing policy of a request that names none.
#ifndef ATTUNE_SERVER_CATALOG_POLICY_H_
#define ATTUNE_SERVER_CATALOG_POLICY_H_

#include "attune/v1/trial.pb.h"

namespace attune::catalog {

inline constexpr v1::Policy kDefaultPolicy = v1::POLICY_HOT;

inline v1::Policy OrDefault(v1::Policy policy) { return policy == v1::POLICY_UNSPECIFIED ? kDefaultPolicy : policy; }

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_POLICY_H_
