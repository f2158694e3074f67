// Content addresses.
#ifndef ATTUNE_SERVER_BASE_SHA256_H_
#define ATTUNE_SERVER_BASE_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace attune {

// 64 lower-case hexadecimal digits.
std::string Sha256(absl::string_view bytes);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_SHA256_H_
