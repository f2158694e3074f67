// Sizes as flags have them: "10GiB", "512MiB", "0".
#ifndef ATTUNE_SERVER_BASE_BYTE_SIZE_H_
#define ATTUNE_SERVER_BASE_BYTE_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace attune {

// A type of flag of its own.
struct ByteSize {
  int64_t bytes = 0;
};

// A whole number from 0 on, with B, KiB, MiB, GiB or TiB behind it; only 0 may be without.
bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error);
std::string AbslUnparseFlag(ByteSize size);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_BYTE_SIZE_H_
