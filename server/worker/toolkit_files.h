// The CUDA toolkit that a compile worker is about to use.
#ifndef ATTUNE_SERVER_WORKER_TOOLKIT_FILES_H_
#define ATTUNE_SERVER_WORKER_TOOLKIT_FILES_H_

#include <string>
#include <vector>

namespace attune::worker {

// The folders of NVRTC and of the toolkit's headers; empty without them. What it opens to find them stays open, so that
// the first compile need not open it again, or could not, once the worker is confined.
std::vector<std::string> ToolkitFiles();

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_TOOLKIT_FILES_H_
