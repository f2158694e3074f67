// ptxas's report within a compiler's log, of which a kernel's author writes parts.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "server/base/device_profile.h"
#include "server/device/cuda/resource_report.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

// Numbers of 64 bits overflow where the report adds them up, which what is compiled for GPUs is yet to check; what the
// daemon believes of them is checked by itself (server/supervisor/answers.cc).
bool HasLongNumber(absl::string_view text) {
  constexpr int kMostDigits = 15;
  int digits = 0;
  return std::any_of(text.begin(), text.end(), [&digits](char c) {
    digits = absl::ascii_isdigit(c) ? digits + 1 : 0;
    return digits > kMostDigits;
  });
}

ATTUNE_FUZZ_TARGET(ptxas_report) {
  if (HasLongNumber(input)) return;
  const auto entries = device::cuda::ParseResourceReport(input);
  for (const auto& entry : entries) {
    Expect(entry.registers() >= 0 && entry.static_shared_bytes() >= 0, "numbers of a report have no sign");
    Expect(entry.name().find('\'') == std::string::npos, "a name ends at its quote");
    Expect(input.find(entry.name()) != absl::string_view::npos, "a name is one that the report has");
  }
  Expect(entries.size() <= input.size(), "an entry has a line");
}

}  // namespace
}  // namespace attune::fuzz
