// What the text of a submission's source may not have: includes that lead elsewhere, and what reads files at compile
// time. The wall is the compile worker's cage (docs/design.md); these are the errors that tell an author beforehand.
#ifndef ATTUNE_SERVER_SUBMIT_SOURCE_RULES_H_
#define ATTUNE_SERVER_SUBMIT_SOURCE_RULES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "attune/v1/device.pb.h"

namespace attune::submit {

// Each mistake as "kernel.cl:12: ...".
std::vector<std::string> MistakesInSource(absl::string_view path, absl::string_view text, v1::Backend backend);

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_SOURCE_RULES_H_
