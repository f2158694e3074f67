#include "server/space/family.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/attune/quote.h"
#include "server/base/sha256.h"
#include "server/space/manifest.h"

namespace attune::space {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "family.textproto";
constexpr char kRootPrefix[] = "//";

std::optional<std::string> Read(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The name in `#include "name"`, if that is what the line is.
std::optional<std::string> QuotedInclude(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "#")) return std::nullopt;
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "include")) return std::nullopt;
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "\"")) return std::nullopt;
  const size_t end = line.find('"');
  if (end == absl::string_view::npos) return std::nullopt;
  return std::string(line.substr(0, end));
}

// Collects a family's files: the sources named, then what they include, each once.
class SourceReader {
 public:
  using Reader = std::function<std::optional<std::string>(const fs::path&)>;

  SourceReader(fs::path root, fs::path folder, Reader read, Family& family)
      : root_(std::move(root)), folder_(std::move(folder)), read_(std::move(read)), family_(family) {}

  absl::Status Add(const std::string& source) {
    const bool from_root = absl::StartsWith(source, kRootPrefix);
    const std::string name(absl::StripPrefix(source, kRootPrefix));
    const fs::path path = (from_root ? root_ : folder_) / name;
    std::optional<std::string> text;
    if (IsBelowRoot(path)) text = read_(path);
    if (!text)
      return absl::InvalidArgumentError(
          absl::StrCat("sources has '", source, "', and there is no ", path.string(), " below ", root_.string()));
    return Keep(name, path, *text);
  }

 private:
  absl::Status Keep(const std::string& name, const fs::path& path, const std::string& text) {
    for (const auto& [known, unused] : family_.sources) {
      if (known == name) return absl::OkStatus();
    }
    family_.sources.emplace_back(name, text);
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      const std::optional<std::string> include = QuotedInclude(line);
      if (!include) continue;
      if (absl::Status status = Include(*include, path); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Include(const std::string& name, const fs::path& from) {
    for (const fs::path& directory : {folder_, root_, from.parent_path()}) {
      if (!IsBelowRoot(directory / name)) continue;
      if (std::optional<std::string> text = read_(directory / name); text) {
        return Keep(name, directory / name, *text);
      }
    }
    return absl::InvalidArgumentError(absl::StrCat(from.string(), " includes \"", name, "\", which is in neither ",
                                                   folder_.string(), " nor ", root_.string()));
  }

  // What is read is sent to compilers and stored in hashes: no file beside the kernels has a place there.
  bool IsBelowRoot(const fs::path& path) const {
    const fs::path below = path.lexically_normal().lexically_relative(root_.lexically_normal());
    return !below.empty() && *below.begin() != "..";
  }

  const fs::path root_;
  const fs::path folder_;
  const Reader read_;
  Family& family_;
};

// What decides how a given variant is compiled and run. What only decides which variants there are, or is for people,
// is left out, so that a larger space leaves the trials of the smaller one valid. Each part follows its length: no two
// families read the same.
std::string HashOf(const Family& family) {
  family::v1::KernelFamily code = family.manifest;
  code.clear_description();
  code.clear_problem_limits();
  code.clear_constraints();
  code.clear_guess_precedence();
  for (family::v1::Parameter& parameter : *code.mutable_parameters()) {
    parameter.clear_description();
    parameter.clear_values();
    parameter.clear_guess();
    parameter.clear_when_absent();
  }
  std::string all;
  const auto append = [&all](const std::string& part) { absl::StrAppend(&all, part.size(), "\n", part); };
  append(code.SerializeAsString());
  for (const auto& [name, text] : family.sources) {
    append(name);
    append(text);
  }
  return Sha256(all);
}

}  // namespace

namespace {

// Null, with what is wrong added to `mistakes`.
std::shared_ptr<const Family> Load(const std::string& root, const std::string& folder,
                                   std::vector<absl::Status>& mistakes) {
  const fs::path path = fs::path(root) / folder / kManifest;
  const size_t before = mistakes.size();
  const auto note = [&](const absl::Status& status) {
    mistakes.push_back(absl::InvalidArgumentError(absl::StrCat(path.string(), ": ", status.message())));
  };
  const std::optional<std::string> text = Read(path);
  if (!text) {
    mistakes.push_back(absl::NotFoundError(absl::StrCat("cannot read ", path.string())));
    return nullptr;
  }
  absl::StatusOr<family::v1::KernelFamily> manifest = ParseManifest(*text);
  if (!manifest.ok()) {
    note(manifest.status());
    return nullptr;
  }
  for (const absl::Status& mistake : MistakesIn(*manifest)) note(mistake);
  if (manifest->name() != folder) {
    note(absl::InvalidArgumentError(
        absl::StrCat("name is ", Quoted(manifest->name()), "; it must be the folder's, ", Quoted(folder))));
  }
  if (absl::StartsWith(folder, kSubmittedPrefix)) {
    note(absl::InvalidArgumentError(
        absl::StrCat("name is ", Quoted(folder), "; names that begin with ", kSubmittedPrefix, " are submissions'")));
  }
  auto family = std::make_shared<Family>();
  family->manifest = *std::move(manifest);
  SourceReader reader(root, fs::path(root) / folder, Read, *family);
  for (const std::string& source : family->manifest.sources()) {
    if (absl::Status status = reader.Add(source); !status.ok()) note(status);
  }
  if (mistakes.size() > before) return nullptr;
  family->source_hash = HashOf(*family);
  return family;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Family>> LoadFamily(const std::string& root, const std::string& folder) {
  std::vector<absl::Status> mistakes;
  std::shared_ptr<const Family> family = Load(root, folder, mistakes);
  if (family == nullptr) return mistakes.front();
  return family;
}

absl::StatusOr<std::shared_ptr<const Family>> MakeFamily(family::v1::KernelFamily manifest,
                                                         const std::map<std::string, std::string>& files,
                                                         const std::string& root) {
  std::vector<absl::Status> mistakes = MistakesIn(manifest);
  const fs::path folder = fs::path(root) / manifest.name();
  auto family = std::make_shared<Family>();
  family->manifest = std::move(manifest);
  const auto read = [&](const fs::path& path) -> std::optional<std::string> {
    const fs::path normal = path.lexically_normal();
    const fs::path own = normal.lexically_relative(folder.lexically_normal());
    if (const auto file = files.find(own.string()); file != files.end()) return file->second;
    const fs::path library = normal.lexically_relative(fs::path(root).lexically_normal());
    if (library.empty() || *library.begin() == "..") return std::nullopt;
    std::error_code error;
    const bool of_a_family = fs::exists(fs::path(root) / *library.begin() / kManifest, error);
    return of_a_family ? std::nullopt : Read(normal);
  };
  SourceReader reader(root, folder, read, *family);
  for (const std::string& source : family->manifest.sources()) {
    if (absl::Status status = reader.Add(source); !status.ok()) mistakes.push_back(std::move(status));
  }
  if (!mistakes.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(mistakes, "; ", [](std::string* out, const absl::Status& mistake) {
      absl::StrAppend(out, mistake.message());
    }));
  }
  family->source_hash = HashOf(*family);
  return family;
}

LoadedFamilies LoadEveryFamily(const std::vector<std::string>& roots) {
  LoadedFamilies loaded;
  std::map<std::string, std::string> found;  // name to root
  for (const std::string& root : roots) {
    std::error_code error;
    std::vector<std::string> folders;
    for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
      std::error_code unreadable;
      if (fs::exists(entry.path() / kManifest, unreadable)) folders.push_back(entry.path().filename().string());
    }
    if (error) {
      loaded.mistakes.push_back(
          absl::NotFoundError(absl::StrCat("cannot read kernel families in ", root, ": ", error.message())));
    }
    std::sort(folders.begin(), folders.end());
    for (const std::string& folder : folders) {
      std::shared_ptr<const Family> family = Load(root, folder, loaded.mistakes);
      if (family == nullptr) continue;
      if (const auto [other, fresh] = found.try_emplace(family->name(), root); !fresh) {
        loaded.mistakes.push_back(absl::InvalidArgumentError(absl::StrCat(
            "kernel family ", Quoted(family->name()), " is in two directories: ", other->second, " and ", root)));
        continue;
      }
      loaded.families.push_back(std::move(family));
    }
  }
  return loaded;
}

absl::StatusOr<std::vector<std::shared_ptr<const Family>>> LoadFamilies(const std::string& root) {
  LoadedFamilies loaded = LoadEveryFamily({root});
  if (!loaded.mistakes.empty()) return loaded.mistakes.front();
  return std::move(loaded.families);
}

}  // namespace attune::space
