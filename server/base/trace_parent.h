// What a caller says of the trace that its call belongs to: W3C Trace Context's `traceparent`, as metadata of the call.
#ifndef ATTUNE_SERVER_BASE_TRACE_PARENT_H_
#define ATTUNE_SERVER_BASE_TRACE_PARENT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace attune {

// The trace's id, 32 hexadecimal digits; empty where `header` is none. However long that is, 55 bytes of it are read.
std::string TraceIdIn(absl::string_view header);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_TRACE_PARENT_H_
