// The methods of the services as they are counted: an index each, that of access::kMethods.
#ifndef ATTUNE_SERVER_SERVICE_CALL_METHODS_H_
#define ATTUNE_SERVER_SERVICE_CALL_METHODS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/access/method.h"
#include "server/metrics/calls.h"

namespace attune::service {

// For metrics::Calls.
std::vector<metrics::CallMethod> CallMethods();

// Counts a call that never came to its method: refused with INVALID_ARGUMENT. No effect for other names.
void CountUnreadable(metrics::Calls& calls, const std::string& method);

inline size_t IndexOf(access::MethodRow method) { return static_cast<size_t>(&*method - access::kMethods); }

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_CALL_METHODS_H_
