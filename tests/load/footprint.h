// What a daemon holds of its host: memory, file descriptors, threads, processes and locks. Samples during a load say
// whether it grows.
#ifndef ATTUNE_TESTS_LOAD_FOOTPRINT_H_
#define ATTUNE_TESTS_LOAD_FOOTPRINT_H_

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "tests/load/daemon_watch.h"

namespace attune {

struct Footprint {
  double mib = 0;
  int descriptors = 0;
  int threads = 0;
  int processes = 0;  // below it, and theirs
  int locks = 0;      // of files, its own and those of its processes
};

inline int EntriesOf(const std::string& directory) {
  int count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    ++count;
  }
  return count;
}

// By parent.
inline std::multimap<pid_t, pid_t> Children() {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    std::ifstream stat(entry->path() / "stat");
    std::string line;
    if (!std::getline(stat, line)) continue;
    std::istringstream rest(line.substr(line.rfind(')') + 1));  // a name may hold anything
    char state = 0;
    pid_t parent = 0;
    if (rest >> state >> parent && state != 'Z') children.emplace(parent, std::atoi(line.c_str()));
  }
  return children;
}

inline std::vector<pid_t> Tree(pid_t root) {
  const std::multimap<pid_t, pid_t> children = Children();
  std::vector<pid_t> tree = {root};
  for (size_t i = 0; i < tree.size(); ++i) {
    for (auto [child, end] = children.equal_range(tree[i]); child != end; ++child) tree.push_back(child->second);
  }
  return tree;
}

inline int LocksOf(const std::vector<pid_t>& processes) {
  int count = 0;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access;
    pid_t pid = 0;
    if (!(words >> number >> kind >> mode >> access >> pid)) continue;
    for (const pid_t one : processes) count += one == pid ? 1 : 0;
  }
  return count;
}

inline Footprint FootprintOf(pid_t pid) {
  const std::string proc = "/proc/" + std::to_string(pid);
  const std::vector<pid_t> tree = Tree(pid);
  return {.mib = MemoryMib(pid, "VmRSS"),
          .descriptors = EntriesOf(proc + "/fd"),
          .threads = EntriesOf(proc + "/task"),
          .processes = static_cast<int>(tree.size()) - 1,
          .locks = LocksOf(tree)};
}

}  // namespace attune

#endif  // ATTUNE_TESTS_LOAD_FOOTPRINT_H_
