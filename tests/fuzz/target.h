// What a fuzzer and the replay of its corpus run: a function that is given one input and aborts, by itself or by a
// sanitizer, where something that must hold does not.
#ifndef ATTUNE_TESTS_FUZZ_TARGET_H_
#define ATTUNE_TESTS_FUZZ_TARGET_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attune::fuzz {

struct Target {
  absl::string_view name;  // its source's and its corpus's
  void (*run)(absl::string_view input);
};

// Those of this program: one of a fuzzer, all of the replay.
std::vector<Target>& Targets();

struct Registration {
  explicit Registration(const Target& target) { Targets().push_back(target); }
};

// Says what does not hold, and aborts.
void Expect(bool holds, absl::string_view what);

// An error of a caller's mistake: `code`, and a message of one or more of `words`, of which it has each.
void ExpectRefusal(const absl::Status& status, absl::StatusCode code, const std::vector<absl::string_view>& words);

}  // namespace attune::fuzz

// ATTUNE_FUZZ_TARGET(problem) { what is done with `input` }
#define ATTUNE_FUZZ_TARGET(name)                                                     \
  static void Run_##name(absl::string_view input);                                   \
  static const attune::fuzz::Registration registration_##name({#name, &Run_##name}); \
  static void Run_##name(absl::string_view input)

#endif  // ATTUNE_TESTS_FUZZ_TARGET_H_
