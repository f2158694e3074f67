// Reads ptxas's report (--ptxas-options=-v) out of a compiler's log.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_RESOURCE_REPORT_H_
#define ATTUNE_SERVER_DEVICE_CUDA_RESOURCE_REPORT_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "attune/worker/v1/worker.pb.h"

namespace attune::device::cuda {

// One entry a kernel, in the log's order. Spills and stack of functions that are called and not inlined count for every
// kernel: the log does not say which one calls them. So does a performance loss of no function or of such a one.
std::vector<worker::v1::CompileResponse::Entry> ParseResourceReport(absl::string_view log);

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_RESOURCE_REPORT_H_
