// What a host remembers of memory that lies on a device: 64 bits under a key that no kernel knows.
#ifndef ATTUNE_SERVER_VERIFY_DIGEST_H_
#define ATTUNE_SERVER_VERIFY_DIGEST_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace attune::verify {

// The sum, modulo 2^64, over all i of Mix(word i ^ Mix(key + i * kCounterStep)), words being 8 bytes, little-endian,
// the last filled up with zeros. Whoever does not know the key changes it with any change, but for one in 2^64.
uint64_t DigestOf(absl::Span<const std::byte> bytes, uint64_t key);
// Of so many bytes of one value.
uint64_t DigestOf(std::byte value, size_t bytes, uint64_t key);

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_DIGEST_H_
