// Bugs to plant into attention_opencl, each by replacing one piece of its text, and where it should be found.
#ifndef ATTUNE_TESTS_OPENCL_MUTANTS_H_
#define ATTUNE_TESTS_OPENCL_MUTANTS_H_

#include <ostream>
#include <vector>

namespace attune::testing {

struct Mutant {
  const char* name;  // of a test
  const char* file;  // its path's end
  const char* from;  // occurs exactly once in the file
  const char* to;
  const char* problem;  // one that it is found on
  const char* variant;
  const char* why_not = "";  // not empty: why no result can show it
};
inline void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }
const std::vector<Mutant>& Mutants();

}  // namespace attune::testing

#endif  // ATTUNE_TESTS_OPENCL_MUTANTS_H_
