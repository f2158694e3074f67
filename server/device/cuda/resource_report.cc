#include "server/device/cuda/resource_report.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attune::device::cuda {
namespace {

using Entry = worker::v1::CompileResponse::Entry;

// More than any resource; sums of such numbers overflow in no log. A kernel's author writes parts of it (#warning).
constexpr int64_t kMostOfAResource = int64_t{1} << 40;

// The number before `unit`: 48 of "Used 48 registers, used 1 barriers" for " registers". 0 when there is none, at most
// kMostOfAResource.
int64_t NumberBefore(absl::string_view line, absl::string_view unit) {
  const size_t end = line.find(unit);
  if (end == absl::string_view::npos) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t number = 0;
  return absl::SimpleAtoi(line.substr(begin, end - begin), &number) ? std::min(number, kMostOfAResource) : 0;
}

// What stands after `words`, up to a quote or the line's end.
std::string After(absl::string_view line, absl::string_view words) {
  absl::string_view rest = line.substr(line.find(words) + words.size());
  return std::string(absl::StripSuffix(rest.substr(0, rest.find('\'')), "\r"));
}

// ptxas says of these that code lost what it was written for: setmaxnreg is ignored (C7508), wgmma is serialized (the
// others). Of what follows the code, the words without "Potential Performance Loss: ".
std::string PerformanceLoss(absl::string_view line) {
  constexpr absl::string_view kCodes[] = {"C7508", "C7510", "C7511", "C7512", "C7513", "C7514", "C7515"};
  constexpr absl::string_view kSaid = "Potential Performance Loss: ";
  for (absl::string_view code : kCodes) {
    const size_t begin = line.find(absl::StrCat("(", code, ") "));
    if (begin == absl::string_view::npos) continue;
    absl::string_view words = line.substr(begin + code.size() + 3);
    absl::ConsumePrefix(&words, kSaid);
    return absl::StrCat(code, ": ", absl::StripSuffix(words, "\r"));
  }
  return "";
}

// Each kernel's first loss. What is said of one of `entries` is its own, all else everybody's.
void AddPerformanceLosses(absl::string_view log, std::vector<Entry>* entries) {
  constexpr absl::string_view kOf = "in the function '";
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    const std::string loss = PerformanceLoss(line);
    if (loss.empty()) continue;
    const std::string function = absl::StrContains(line, kOf) ? After(line, kOf) : "";
    const bool is_kernel =
        std::any_of(entries->begin(), entries->end(), [&](const Entry& entry) { return entry.name() == function; });
    for (Entry& entry : *entries) {
      if (is_kernel && entry.name() != function) continue;
      if (entry.performance_loss().empty()) entry.set_performance_loss(loss);
    }
  }
}

}  // namespace

std::vector<Entry> ParseResourceReport(absl::string_view log) {
  constexpr absl::string_view kEntry = "Compiling entry function '";
  constexpr absl::string_view kFunction = "Function properties for ";
  std::vector<Entry> entries;
  int64_t called_spill = 0, called_stack = 0;
  std::string function;  // that the line with stack and spills is about
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StrContains(line, kEntry)) {
      entries.emplace_back().set_name(After(line, kEntry));
    } else if (absl::StrContains(line, kFunction)) {
      function = After(line, kFunction);
    } else if (absl::StrContains(line, " bytes stack frame")) {
      const int64_t stack = NumberBefore(line, " bytes stack frame");
      const int64_t spill = NumberBefore(line, " bytes spill stores") + NumberBefore(line, " bytes spill loads");
      if (!entries.empty() && entries.back().name() == function) {
        entries.back().set_stack_bytes(stack);
        entries.back().set_spill_bytes(spill);
      } else {
        called_spill += spill;
        called_stack = std::max(called_stack, stack);
      }
    } else if (!entries.empty() && absl::StrContains(line, ": Used ")) {
      entries.back().set_registers(NumberBefore(line, " registers"));
      entries.back().set_static_shared_bytes(NumberBefore(line, " bytes smem"));
    }
  }
  for (Entry& entry : entries) {
    entry.set_spill_bytes(entry.spill_bytes() + called_spill);
    entry.set_stack_bytes(entry.stack_bytes() + called_stack);
  }
  AddPerformanceLosses(log, &entries);
  return entries;
}

}  // namespace attune::device::cuda
