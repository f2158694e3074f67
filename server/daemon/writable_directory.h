// Directories that need not be there yet, looked at before they are needed.
#ifndef ATTUNE_SERVER_DAEMON_WRITABLE_DIRECTORY_H_
#define ATTUNE_SERVER_DAEMON_WRITABLE_DIRECTORY_H_

#include <string>

namespace attune {

// Empty when a daemon could make the directory and write to it. Leaves nothing behind.
std::string WhyNotMade(const std::string& path);

// Whether both names lead to one directory, there or not.
bool IsSameDirectory(const std::string& one, const std::string& other);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_WRITABLE_DIRECTORY_H_
