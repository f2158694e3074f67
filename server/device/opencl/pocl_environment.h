// Where PoCL may keep the files of its compiles, and when it compiles.
//
// POCL_WORK_GROUP_SPECIALIZATION becomes 0: otherwise a kernel is compiled once more at its first launch, for that
// launch's grid, by the process that is about to time it. With it what is in the artifact is what runs. (Kernels name
// their work-group's size by reqd_work_group_size, so nothing is lost.)
//
// PoCL writes every program below POCL_CACHE_DIR, by default ~/.cache/pocl, and keeps them for ever. A worker of a
// daemon may have no home, must not fill a disk, and must not time a compile that was another process's. So, unless it
// is set already, POCL_KERNEL_CACHE becomes 0: a program's files are removed with the program.
//
// Then the directory must be the process's own. A binary bears the name of its files' directory, so two processes that
// load one binary would share them, and the first to release the program would remove the other's, which PoCL answers
// with abort(). POCL_CACHE_DIR becomes a new directory below what it was, or below $TMPDIR (or /tmp)/attune-pocl-<uid>,
// locked for as long as the process lives. What processes that are gone have left, a later one removes.
#ifndef ATTUNE_SERVER_DEVICE_OPENCL_POCL_ENVIRONMENT_H_
#define ATTUNE_SERVER_DEVICE_OPENCL_POCL_ENVIRONMENT_H_

#include "absl/status/status.h"

namespace attune::device::opencl {

// Before the first OpenCL call of the process, while it has one thread. FailedPrecondition when the directory cannot be
// made or its parent is somebody else's. A second call does nothing.
absl::Status PreparePoclEnvironment();

}  // namespace attune::device::opencl

#endif  // ATTUNE_SERVER_DEVICE_OPENCL_POCL_ENVIRONMENT_H_
