#include "server/submit/package.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/attune/quote.h"
#include "server/base/sha256.h"
#include "server/space/manifest.h"
#include "server/submit/limits.h"
#include "server/submit/source_rules.h"

namespace attune::submit {
namespace {

constexpr char kManifest[] = "family.textproto";
constexpr absl::string_view kHeader = "/* attune";
constexpr size_t kHashInName = 16;

using Mistakes = std::vector<std::string>;

template <typename... What>
absl::Status Invalid(const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat(what...));
}

absl::Status Together(const Mistakes& mistakes) {
  return mistakes.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrJoin(mistakes, "; "));
}

std::string PathMistake(absl::string_view path) {
  const auto allowed = [](char c) { return absl::ascii_isalnum(c) || absl::StrContains("._-/", c); };
  if (path.empty() || path.size() > kMostPath || !std::all_of(path.begin(), path.end(), allowed)) {
    return absl::StrCat("files: path is ", Quoted(path), "; allowed: 1 to ", kMostPath,
                        " letters, digits, '.', '_', '-' and '/'");
  }
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == "." || part == "..") {
      return absl::StrCat("files: path is ", Quoted(path), "; allowed: relative paths without '.' and '..'");
    }
  }
  return "";
}

// By path. InvalidArgument when they are too many, too large, or misnamed.
absl::StatusOr<std::map<std::string, std::string>> ByPath(const Files& files) {
  if (files.empty() || files.size() > kMostFiles) {
    return Invalid("files has ", files.size(), " entries; allowed: 1 to ", kMostFiles);
  }
  Mistakes mistakes;
  std::map<std::string, std::string> by_path;
  size_t bytes = 0;
  for (const v1::SourceFile& file : files) {
    if (std::string mistake = PathMistake(file.path()); !mistake.empty()) {
      mistakes.push_back(std::move(mistake));
      continue;
    }
    if (!by_path.emplace(file.path(), file.text()).second)
      mistakes.push_back(absl::StrCat(file.path(), " is there twice"));
    if (file.text().size() > kMostFileBytes) {
      mistakes.push_back(
          absl::StrCat(file.path(), " has ", file.text().size(), " bytes; allowed: at most ", kMostFileBytes));
    }
    if (absl::StrContains(file.text(), '\0')) {
      mistakes.push_back(absl::StrCat(file.path(), " has a byte 0; allowed: text"));
    }
    bytes += file.text().size();
  }
  if (bytes > kMostBytes)
    mistakes.push_back(absl::StrCat("files has ", bytes, " bytes; allowed: at most ", kMostBytes));
  if (absl::Status status = Together(mistakes); !status.ok()) return status;
  return by_path;
}

std::string HashOf(const std::map<std::string, std::string>& by_path) {
  std::string all;
  for (const auto& [path, text] : by_path) absl::StrAppend(&all, path.size(), "\n", path, text.size(), "\n", text);
  return Sha256(all);
}

absl::StatusOr<family::v1::KernelFamily> Parse(absl::string_view path, const std::string& text) {
  if (text.size() > kMostManifestBytes) {
    return Invalid(path, ": the manifest has ", text.size(), " bytes; allowed: at most ", kMostManifestBytes);
  }
  absl::StatusOr<family::v1::KernelFamily> manifest = space::ParseManifest(text);
  if (!manifest.ok()) return Invalid(path, ": ", manifest.status().message());
  return manifest;
}

// Of a source that has its manifest in the comment at its head.
absl::StatusOr<family::v1::KernelFamily> ManifestInHeader(const std::string& path, absl::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  const size_t end = begin == absl::string_view::npos ? begin : text.find("*/", begin);
  if (end == absl::string_view::npos || !absl::StartsWith(text.substr(begin), kHeader)) {
    return Invalid(path, ": there is no ", kManifest, ", and the file does not begin with a comment ", Quoted(kHeader),
                   " that holds the manifest");
  }
  // Its lines keep their numbers.
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.begin() + begin, '\n'));
  const absl::string_view inside = text.substr(begin + kHeader.size(), end - begin - kHeader.size());
  absl::StatusOr<family::v1::KernelFamily> manifest = Parse(path, absl::StrCat(std::string(lines, '\n'), inside));
  if (!manifest.ok()) return manifest;
  if (manifest->sources().empty()) manifest->add_sources(path);
  if (manifest->backend() == v1::BACKEND_UNSPECIFIED) {
    manifest->set_backend(absl::EndsWith(path, ".cu") ? v1::BACKEND_CUDA : v1::BACKEND_OPENCL);
  }
  return manifest;
}

absl::StatusOr<family::v1::KernelFamily> ManifestOf(const std::map<std::string, std::string>& files) {
  if (const auto file = files.find(kManifest); file != files.end()) return Parse(kManifest, file->second);
  if (files.size() > 1) {
    return Invalid("files has no ", kManifest, "; without one allowed is a single .cl or .cu with its manifest inside");
  }
  const auto& [path, text] = *files.begin();
  if (!absl::EndsWith(path, ".cl") && !absl::EndsWith(path, ".cu")) {
    return Invalid(path, " is neither a .cl nor a .cu; without a ", kManifest, " allowed is one of these");
  }
  return ManifestInHeader(path, text);
}

bool IsAllowedOption(absl::string_view option, v1::Backend backend) {
  static constexpr absl::string_view kOpenCl[] = {"-cl-", "-D"};
  static constexpr absl::string_view kCuda[] = {"-D",
                                                "-std=",
                                                "--std=",
                                                "--use_fast_math",
                                                "-use_fast_math",
                                                "--maxrregcount=",
                                                "-maxrregcount=",
                                                "--fmad",
                                                "-fmad",
                                                "--ftz",
                                                "-ftz",
                                                "--prec-div",
                                                "-prec-div",
                                                "--prec-sqrt",
                                                "-prec-sqrt",
                                                "--extra-device-vectorization",
                                                "-extra-device-vectorization",
                                                "--restrict",
                                                "-restrict",
                                                "-default-device",
                                                "--device-as-default-execution-space"};
  const auto begins = [option](absl::string_view prefix) { return absl::StartsWith(option, prefix); };
  const bool one_word = !absl::StrContains(option, ' ') && !absl::StrContains(option, '\t');
  if (backend == v1::BACKEND_OPENCL) return one_word && std::any_of(std::begin(kOpenCl), std::end(kOpenCl), begins);
  return one_word && std::any_of(std::begin(kCuda), std::end(kCuda), begins);
}

// Of one who is no friend of the house.
Mistakes MistakesIn(const family::v1::KernelFamily& manifest) {
  Mistakes mistakes;
  const auto most = [&](absl::string_view what, int64_t has, int64_t allowed) {
    if (has > allowed) mistakes.push_back(absl::StrCat(what, " has ", has, " entries; allowed: at most ", allowed));
  };
  if (manifest.role() != family::v1::ROLE_UNSPECIFIED && manifest.role() != family::v1::ROLE_SEARCH) {
    mistakes.push_back(absl::StrCat("role is ", family::v1::Role_Name(manifest.role()), "; allowed is ROLE_SEARCH"));
  }
  most("parameters", manifest.parameters_size(), kMostParameters);
  for (const family::v1::Parameter& parameter : manifest.parameters()) {
    most(absl::StrCat("parameters '", parameter.name(), "': values"), parameter.values_size(), kMostValues);
  }
  most("launches", manifest.launches_size(), kMostLaunches);
  for (const family::v1::Launch& launch : manifest.launches()) {
    most(absl::StrCat("launches '", launch.entry(), "': args"), launch.args_size(), kMostArguments);
  }
  for (const std::string& option : manifest.compile_options()) {
    if (!IsAllowedOption(option, manifest.backend())) {
      mistakes.push_back(
          absl::StrCat("compile_options has ", Quoted(option), "; allowed: ",
                       manifest.backend() == v1::BACKEND_OPENCL
                           ? "-cl-... and -D..."
                           : "-D..., --std=, --use_fast_math, --maxrregcount= and what concerns floats"));
    }
  }
  return mistakes;
}

// No scratch buffer may take a device's memory for itself.
void LimitScratch(family::v1::KernelFamily& manifest) {
  for (const family::v1::Scratch& scratch : manifest.scratch()) {
    if (scratch.bytes().empty()) continue;
    family::v1::Constraint& limit = *manifest.add_constraints();
    limit.set_expr(absl::StrCat("(", scratch.bytes(), ") <= ", kMostScratchBytes));
    limit.set_reason(absl::StrCat("a submission's scratch buffer ('", scratch.name(), "') has at most 1 GiB"));
  }
}

}  // namespace

absl::StatusOr<Package> ReadPackage(const Files& files) {
  absl::StatusOr<std::map<std::string, std::string>> by_path = ByPath(files);
  if (!by_path.ok()) return by_path.status();
  absl::StatusOr<family::v1::KernelFamily> manifest = ManifestOf(*by_path);
  if (!manifest.ok()) return manifest.status();
  Package package;
  package.content_hash = HashOf(*by_path);
  package.manifest = *std::move(manifest);
  Mistakes mistakes = MistakesIn(package.manifest);
  for (const auto& [path, text] : *by_path) {
    if (path == kManifest) continue;
    for (std::string& mistake : MistakesInSource(path, text, package.manifest.backend())) {
      mistakes.push_back(std::move(mistake));
    }
  }
  if (absl::Status status = Together(mistakes); !status.ok()) return status;
  package.manifest.set_name(absl::StrCat(space::kSubmittedPrefix, package.content_hash.substr(0, kHashInName)));
  if (package.manifest.operation() == v1::OPERATION_KIND_UNSPECIFIED) {
    package.manifest.set_operation(v1::OPERATION_KIND_ATTENTION_FORWARD);
  }
  package.manifest.clear_guess_precedence();
  LimitScratch(package.manifest);
  package.files = *std::move(by_path);
  package.files.erase(kManifest);
  return package;
}

absl::StatusOr<std::shared_ptr<const space::Family>> FamilyOf(const Package& package, const std::string& library) {
  return space::MakeFamily(package.manifest, package.files, library);
}

absl::StatusOr<std::shared_ptr<const space::Family>> FamilyOf(const Files& files, const std::string& library) {
  const absl::StatusOr<Package> package = ReadPackage(files);
  if (!package.ok()) return package.status();
  return FamilyOf(*package, library);
}

}  // namespace attune::submit
