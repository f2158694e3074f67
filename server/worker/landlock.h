// Landlock (landlock(7)): which files the calling thread, and what it starts from then on, may open. Every layer takes
// away; none gives back.
#ifndef ATTUNE_SERVER_WORKER_LANDLOCK_H_
#define ATTUNE_SERVER_WORKER_LANDLOCK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace attune::worker {

// Paths; a folder stands for all below it. What does not exist is passed over: nobody can open it either.
struct VisibleFiles {
  std::vector<std::string> readable;    // files and folders
  std::vector<std::string> executable;  // programs, and the loader that they need
  std::vector<std::string> writable;    // folders to read, write, make and remove files and folders in
  std::vector<std::string> devices;     // to read and write: /dev/null
};

// Nothing else is opened, made, renamed or removed, no TCP port bound or connected to (version 4), and no process
// outside signalled (version 6). Unavailable without Landlock. Sets no_new_privs.
absl::Status SeeOnly(const VisibleFiles& files);

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_LANDLOCK_H_
