#include "server/daemon/writable_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

// Absolute, without symbolic links where it exists, and without a slash at its end.
fs::path Resolved(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path resolved = fs::weakly_canonical(absolute, error);
  const fs::path found = (error ? absolute : resolved).lexically_normal();
  return found.has_filename() ? found : found.parent_path();
}

}  // namespace

std::string WhyNotMade(const std::string& path) {
  std::error_code error;
  fs::path nearest = fs::absolute(path, error).lexically_normal();
  while (!fs::exists(nearest, error) && nearest.has_relative_path()) nearest = nearest.parent_path();
  std::string probe = (nearest / ".attune-check-XXXXXX").string();
  if (mkdtemp(probe.data()) != nullptr) {
    rmdir(probe.c_str());
    return "";
  }
  return absl::StrCat("cannot make directory ", Quoted(path), ": nothing can be made in ", Quoted(nearest.string()),
                      ", ", std::strerror(errno));
}

bool IsSameDirectory(const std::string& one, const std::string& other) { return Resolved(one) == Resolved(other); }

}  // namespace attune
