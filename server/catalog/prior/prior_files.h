// The prior tables that the daemon ships with (shipped_prior.h), embedded: server/catalog/prior/*.txt.
#ifndef ATTUNE_SERVER_CATALOG_PRIOR_FILES_H_
#define ATTUNE_SERVER_CATALOG_PRIOR_FILES_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace attune::catalog {

struct EmbeddedFile {
  absl::string_view name;
  absl::string_view bytes;
};
// Written by client/embed.cmake.
const std::vector<EmbeddedFile>& EmbeddedFiles();

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_PRIOR_FILES_H_
