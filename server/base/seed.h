// Seeds that are the same whenever and wherever a job is run again.
#ifndef ATTUNE_SERVER_BASE_SEED_H_
#define ATTUNE_SERVER_BASE_SEED_H_

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "server/base/sha256.h"

namespace attune {

// Not 0. Equal texts give equal seeds.
inline uint64_t SeedFrom(absl::string_view text) {
  uint64_t seed = 0;
  return absl::SimpleHexAtoi(Sha256(text).substr(0, 16), &seed) && seed != 0 ? seed : 1;
}

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_SEED_H_
