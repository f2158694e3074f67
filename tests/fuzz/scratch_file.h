// A file in memory, for what reads files by their names.
#ifndef ATTUNE_TESTS_FUZZ_SCRATCH_FILE_H_
#define ATTUNE_TESTS_FUZZ_SCRATCH_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {

class ScratchFile {
 public:
  explicit ScratchFile(absl::string_view bytes) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    Expect(fd_ >= 0 && write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
           "a file in memory takes what is written");
  }
  ~ScratchFile() { close(fd_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  const int fd_;
};

}  // namespace attune::fuzz

#endif  // ATTUNE_TESTS_FUZZ_SCRATCH_FILE_H_
