// The pages' files: embedded when this was built, or those of a folder.
#ifndef ATTUNE_CLIENT_DASHBOARD_PAGES_H_
#define ATTUNE_CLIENT_DASHBOARD_PAGES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/dashboard/http_message.h"

namespace attune::dashboard {

struct EmbeddedFile {
  absl::string_view name;
  absl::string_view bytes;
};
// Written by client/embed.cmake.
const std::vector<EmbeddedFile>& EmbeddedFiles();

// Thread-safe.
class Pages {
 public:
  // `root`: a folder that is read at each request, for who writes pages; empty: the embedded files. Chart.js and NOTICE
  // are always those embedded.
  explicit Pages(std::string root);

  // Of "/", which is index.html, and "/NAME"; null when there is none.
  ContentPtr Find(absl::string_view path) const;

 private:
  const std::string root_;
  std::map<std::string, ContentPtr, std::less<>> embedded_;
};

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_PAGES_H_
