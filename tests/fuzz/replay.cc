// Runs targets on the files of their corpora, in an ordinary build, and on so many changed ones, always the same:
// fuzz_replay CORPUS_DIRECTORY CHANGED TARGET ...
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/message_input.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> Read(const fs::path& corpus) {
  std::map<std::string, std::string> inputs;
  if (!fs::is_directory(corpus)) return inputs;
  for (const auto& entry : fs::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs[entry.path().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return inputs;
}

std::string Changed(const std::string& input, Mutator& mutator) {
  if (const auto message = ReadMessageInput(input); message != nullptr && mutator.Chance(0.9)) {
    mutator.Mutate(*message);
    return WriteMessageInput(*message);
  }
  std::string bytes = input;
  mutator.MutateBytes(bytes);
  return bytes;
}

// What fails stays in a file, to become one of the corpus.
void RunChanged(const Target& target, const std::string& input) {
  const fs::path kept = fs::temp_directory_path() / ("attune-fuzz-" + std::string(target.name));
  std::ofstream(kept, std::ios::binary) << input;
  target.run(input);
  fs::remove(kept);
}

int Main(const fs::path& corpora, int changed, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto target =
        std::find_if(Targets().begin(), Targets().end(), [&](const Target& one) { return one.name == name; });
    const std::map<std::string, std::string> inputs = Read(corpora / name);
    if (target == Targets().end() || inputs.empty()) {
      std::fprintf(stderr, "there is no target %s, or its corpus is empty\n", name.c_str());
      return 1;
    }
    for (const auto& [path, input] : inputs) {
      std::fprintf(stderr, "%s\n", path.c_str());
      target->run(input);
    }
    std::fprintf(stderr, "%s: %zu inputs held; changed ones:\n", name.c_str(), inputs.size());
    Mutator mutator(/*seed=*/1);
    for (int i = 0; i < changed; ++i) {
      const auto from = std::next(inputs.begin(), static_cast<int64_t>(mutator.Below(inputs.size())));
      RunChanged(*target, Changed(from->second, mutator));
    }
  }
  return 0;
}

}  // namespace
}  // namespace attune::fuzz

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: fuzz_replay CORPUS_DIRECTORY CHANGED TARGET ...\n");
    return 2;
  }
  return attune::fuzz::Main(argv[1], std::atoi(argv[2]), {argv + 3, argv + argc});
}
