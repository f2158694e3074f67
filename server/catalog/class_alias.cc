#include "server/catalog/class_alias.h"

#include <map>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/base/device_profile.h"

namespace attune::catalog {
namespace {

constexpr size_t kFingerprintInAlias = 4;

// In lower case; letters and digits make words, anything else ends one.
std::vector<std::string> Words(absl::string_view model) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : model) {
    if (!absl::ascii_isalnum(c)) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    words.back() += absl::ascii_tolower(c);
    inside = true;
  }
  return words;
}

std::string AliasOf(const v1::Device& device) {
  for (const absl::string_view name : DeviceProfileNames()) {
    if (DeviceProfile(name)->model() == device.model()) return std::string(name);
  }
  std::vector<std::string> words = Words(device.model());
  std::erase_if(words,
                [](const std::string& word) { return word == "nvidia" || word == "geforce" || word == "tesla"; });
  if (words.empty()) return "device";
  return device.backend() == v1::BACKEND_OPENCL ? words.front() : absl::StrJoin(words, "-");
}

}  // namespace

void NameClasses(std::vector<v1::Device>& devices) {
  std::map<std::string, std::set<std::string>> classes;  // of an alias: fingerprints
  for (v1::Device& device : devices) {
    device.set_class_alias(AliasOf(device));
    classes[device.class_alias()].insert(device.fingerprint());
  }
  for (v1::Device& device : devices) {
    if (classes.at(device.class_alias()).size() == 1) continue;
    device.set_class_alias(
        absl::StrCat(device.class_alias(), "-", device.fingerprint().substr(0, kFingerprintInAlias)));
  }
}

}  // namespace attune::catalog
