// A kernel family as loaded from its folder: the manifest, its sources, and their hash.
#ifndef ATTUNE_SERVER_SPACE_FAMILY_H_
#define ATTUNE_SERVER_SPACE_FAMILY_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/family/v1/family.pb.h"
#include "server/space/evaluator_pool.h"

namespace attune::space {

// What the families of submissions are called by, before their content's hash. None in a folder may be called so.
inline constexpr absl::string_view kSubmittedPrefix = "submitted_";

struct Family {
  family::v1::KernelFamily manifest;
  // (path as #include names it, text); the first is the translation unit. Every file that it includes from
  // kernels_src/ is here; toolkit headers are not.
  std::vector<std::pair<std::string, std::string>> sources;
  // SHA-256, hexadecimal, over the sources and what in the manifest decides how a given variant is compiled and run:
  // another hash makes trials STALE. More values, other constraints and better descriptions leave trials as they are.
  std::string source_hash;
  // The manifest's expressions, compiled; one for each thread that enumerates.
  EvaluatorPool evaluators;

  const std::string& name() const { return manifest.name(); }
};

// Loads `root`/<folder>/family.textproto for every folder that has one. Checks each manifest whole: names unique,
// expressions parse and mention only what exists, sources found, one main launch. InvalidArgument names file,
// field and what is wrong with it.
absl::StatusOr<std::vector<std::shared_ptr<const Family>>> LoadFamilies(const std::string& root);

// All families below all of `roots`, and everything that is wrong with them, a status each: the families that are good
// are there whatever the others are. A name that two directories have is a mistake too.
struct LoadedFamilies {
  std::vector<std::shared_ptr<const Family>> families;
  std::vector<absl::Status> mistakes;
};
LoadedFamilies LoadEveryFamily(const std::vector<std::string>& roots);

// One folder; quoted includes and "//" sources resolve below `root`.
absl::StatusOr<std::shared_ptr<const Family>> LoadFamily(const std::string& root, const std::string& folder);

// One whose manifest and files are at hand: `files` by their paths below the family's folder. What they do not have is
// looked for in the folders of `root` that are no families themselves. InvalidArgument with every mistake.
absl::StatusOr<std::shared_ptr<const Family>> MakeFamily(family::v1::KernelFamily manifest,
                                                         const std::map<std::string, std::string>& files,
                                                         const std::string& root);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_FAMILY_H_
