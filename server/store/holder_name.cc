#include "server/store/holder_name.h"

#include <unistd.h>

#include <array>
#include <cstdint>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/store/files.h"

namespace attune::store {

absl::StatusOr<std::string> HolderOfDirectory(const std::string& data_dir) {
  const std::string file = absl::StrCat(data_dir, "/name");
  absl::StatusOr<std::string> kept = ReadFile(file);
  if (kept.ok() && !kept->empty()) return kept;
  if (!kept.ok() && !absl::IsNotFound(kept.status())) return kept;
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {"host"};
  absl::BitGen random;
  const std::string name = absl::StrFormat("%s-%08x", host.data(), absl::Uniform<uint32_t>(random));
  if (absl::Status status = ReplaceFile(file, name); !status.ok()) return status;
  return name;
}

}  // namespace attune::store
