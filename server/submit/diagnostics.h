// A compiler's log as what is wrong with which line.
#ifndef ATTUNE_SERVER_SUBMIT_DIAGNOSTICS_H_
#define ATTUNE_SERVER_SUBMIT_DIAGNOSTICS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "attune/v1/submission.pb.h"

namespace attune::submit {

// Its errors, the first few, as NVRTC ("kernel.cu(12): error: ...") and Clang ("kernel.cl:12:5: error: ...") write
// them; PoCL puts "error: " in front. `main`: the path of what was compiled, which OpenCL compilers know by a name of
// their own. `sources`: the other paths. A log without any such line is one diagnostic.
std::vector<v1::Diagnostic> DiagnosticsOf(absl::string_view log, const std::string& main,
                                          const std::vector<std::string>& sources);

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_DIAGNOSTICS_H_
