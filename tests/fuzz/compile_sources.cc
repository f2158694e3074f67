// The sources of a compile request as one text.
#include <algorithm>

#include "attune/worker/v1/worker.pb.h"
#include "server/device/opencl/source_inliner.h"
#include "tests/fuzz/message_input.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

ATTUNE_FUZZ_TARGET(compile_sources) {
  const auto request = ReadInputOf<worker::v1::CompileRequest>(input);
  if (request == nullptr) return;
  const auto text = device::opencl::InlineIncludes(request->sources());
  if (!text.ok()) return ExpectRefusal(text.status(), absl::StatusCode::kInvalidArgument, {"sources"});
  Expect(text->rfind("#line 1 \"", 0) == 0, "a text says where it is from");
}

}  // namespace
}  // namespace attune::fuzz
