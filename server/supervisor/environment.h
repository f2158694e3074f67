// The environment that a worker is started with.
#ifndef ATTUNE_SERVER_SUPERVISOR_ENVIRONMENT_H_
#define ATTUNE_SERVER_SUPERVISOR_ENVIRONMENT_H_

#include <string>
#include <vector>

namespace attune::supervisor {

enum class Environment {
  kInherited,  // the daemon's
  // Of the daemon's, what compilers, PoCL, the loader and sanitizers are set up by; nothing of what else the daemon was
  // told there, tokens and addresses for one. PATH is the system's.
  kScrubbed,
};

// "NAME=value" each.
std::vector<std::string> Variables(Environment environment);

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_ENVIRONMENT_H_
