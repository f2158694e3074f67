// Values of labels that are enums' names.
#ifndef ATTUNE_SERVER_METRICS_WORDS_H_
#define ATTUNE_SERVER_METRICS_WORDS_H_

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace attune::metrics {

// "exact" of PROVENANCE_EXACT.
inline std::string Word(absl::string_view name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_WORDS_H_
