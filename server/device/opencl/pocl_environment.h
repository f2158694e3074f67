// Where PoCL may keep the files of its compiles, and when it compiles.
//
// POCL_WORK_GROUP_SPECIALIZATION becomes 0: otherwise a kernel is compiled once more at its first launch, for that
// launch's grid, by the process that is about to time it. With it what is in the artifact is what runs. (Kernels name
// their work-group's size by reqd_work_group_size, so nothing is lost.)
//
// PoCL writes every program below POCL_CACHE_DIR, by default ~/.cache/pocl, and keeps them for ever. A worker of a
// daemon may have no home, must not fill a disk, and must not time a compile that was another process's. So, unless
// the variables are already set, POCL_CACHE_DIR becomes $TMPDIR (or /tmp)/attune-pocl-<uid>, mode 0700, and
// POCL_KERNEL_CACHE becomes 0: a program's files are removed with the program. What a killed worker leaves behind is
// removed by a later one after a day.
#ifndef ATTUNE_SERVER_DEVICE_OPENCL_POCL_ENVIRONMENT_H_
#define ATTUNE_SERVER_DEVICE_OPENCL_POCL_ENVIRONMENT_H_

#include "absl/status/status.h"

namespace attune::device::opencl {

// Before the first OpenCL call of the process, while it has one thread. FailedPrecondition when the directory cannot be
// made or is somebody else's.
absl::Status PreparePoclEnvironment();

}  // namespace attune::device::opencl

#endif  // ATTUNE_SERVER_DEVICE_OPENCL_POCL_ENVIRONMENT_H_
