#include "tests/fuzz/target.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"

namespace attune::fuzz {

std::vector<Target>& Targets() {
  static auto* const targets = [] {
    google::protobuf::SetLogHandler(nullptr);  // it has a line for each text that is not UTF-8
    return new std::vector<Target>;
  }();
  return *targets;
}

void Expect(bool holds, absl::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

void ExpectRefusal(const absl::Status& status, absl::StatusCode code, const std::vector<absl::string_view>& words) {
  Expect(status.code() == code,
         absl::StrCat("a refusal is ", absl::StatusCodeToString(code), "; got ", status.ToString()));
  for (const absl::string_view word : words) {
    Expect(absl::StrContains(status.message(), word),
           absl::StrCat("a refusal names ", word, "; got ", status.ToString()));
  }
}

}  // namespace attune::fuzz
