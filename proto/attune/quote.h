// Text that came from somebody else, as messages, logs and terminals may show it.
#ifndef ATTUNE_PROTO_ATTUNE_QUOTE_H_
#define ATTUNE_PROTO_ATTUNE_QUOTE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace attune {

// `text` with control characters (newlines and tabs too) and bytes that are not UTF-8 written as \n, \r, \t or \x1b: no
// terminal acts on it, and it is valid UTF-8. What is printable stays as it is, backslashes too.
std::string Printable(absl::string_view text);

// What a compiler or a kernel says, fit to be stored and shown over several lines: newlines and tabs stay, other
// control characters go, bytes that are not UTF-8 become U+FFFD. At most `most` bytes, cut between two characters.
std::string Cleaned(absl::string_view text, size_t most);

// The largest message of an error, in bytes: gRPC carries it twice in the metadata, whose limit in most clients is 8
// KB.
inline constexpr size_t kMostMessageBytes = 1024;

// An error's message as one printable line of at most `most` bytes, cut between two characters and then ending in
// "...".
std::string ErrorLine(absl::string_view message, size_t most = kMostMessageBytes);

// The characters of a value that a message repeats.
inline constexpr size_t kMostQuoted = 64;

// A value for an error message: its first kMostQuoted characters, printable, in single quotes. What is longer ends in
// "..." and is followed by its size: 'aaa...' (5000000 bytes).
std::string Quoted(absl::string_view value);

}  // namespace attune

#endif  // ATTUNE_PROTO_ATTUNE_QUOTE_H_
