// The golden vectors of this folder, for tests in C++. A source that includes this is one of its attune_test's
// READS_SOURCES.
#ifndef ATTUNE_TESTS_GOLDEN_GOLDEN_H_
#define ATTUNE_TESTS_GOLDEN_GOLDEN_H_

#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace attune {

// What <name>.json holds; null, and a failed test, when it cannot be read or is empty.
inline nlohmann::json Golden(const std::string& name) {
  const std::string path = std::string(ATTUNE_SOURCE_DIR "/tests/golden/") + name + ".json";
  std::ifstream file(path);
  nlohmann::json vectors = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (vectors.is_discarded() || vectors.empty()) {
    ADD_FAILURE() << path << " cannot be read";
    return nullptr;
  }
  return vectors;
}

// One of its members.
inline nlohmann::json Golden(const std::string& name, const std::string& member) {
  nlohmann::json vectors = Golden(name);
  if (!vectors.is_object() || !vectors.contains(member) || vectors[member].empty()) {
    ADD_FAILURE() << name << ".json has no " << member;
    return nullptr;
  }
  return vectors[member];
}

}  // namespace attune

#endif  // ATTUNE_TESTS_GOLDEN_GOLDEN_H_
