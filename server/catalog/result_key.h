// What an answer is for.
#ifndef ATTUNE_SERVER_CATALOG_RESULT_KEY_H_
#define ATTUNE_SERVER_CATALOG_RESULT_KEY_H_

#include <cstddef>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/host.h"
#include "server/catalog/tuning_key.h"

namespace attune::catalog {

struct ResultKey {
  std::string problem_text;
  // v1::Device.fingerprint. Of answers for devices that are not here, of whose class nothing is known: their id.
  std::string device_class;
  v1::Policy policy = kDefaultPolicy;
};

inline ResultKey KeyOf(const TuningKey& tuning_key) {
  return {tuning_key.problem_text, tuning_key.device.fingerprint(), tuning_key.policy};
}

inline ResultKey KeyOf(const v1::Miss& miss) { return {miss.problem_text(), miss.device_class(), miss.policy()}; }

// The class of what a request names, or that name when nothing here has it.
inline std::string ClassNamed(absl::string_view device, const Host& host) {
  const v1::Device* here = FindDevice(host, device);
  return here != nullptr ? here->fingerprint() : std::string(device);
}

// For whom an incumbent is the answer: its class; where no card of that is here, the class that the card which timed it
// is of now; else the device by its id.
inline ResultKey KeyFor(const v1::Incumbent& incumbent, const Host& host) {
  const v1::Device* here = DeviceFor(incumbent.trial(), host);
  return {incumbent.problem_text(), here != nullptr ? here->fingerprint() : incumbent.device_id(), incumbent.policy()};
}

// Equal for equal keys alone.
inline std::string ToText(const ResultKey& key) {
  return absl::StrCat(key.problem_text, "\n", key.device_class, "\n", static_cast<int>(key.policy));
}

// The key whose text this is.
inline ResultKey KeyOfText(absl::string_view text) {
  const size_t first = text.find('\n');
  const size_t last = text.rfind('\n');
  int policy = 0;
  return {std::string(text.substr(0, first)), std::string(text.substr(first + 1, last - first - 1)),
          absl::SimpleAtoi(text.substr(last + 1), &policy) ? static_cast<v1::Policy>(policy) : kDefaultPolicy};
}

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_RESULT_KEY_H_
