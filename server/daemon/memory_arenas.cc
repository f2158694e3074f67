#include "server/daemon/memory_arenas.h"

#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>

namespace attune {
namespace {

constexpr int kFewest = 2;

}  // namespace

void LimitMemoryArenas() {
  if (std::getenv("MALLOC_ARENA_MAX") != nullptr) return;  // malloc has read it
  cpu_set_t cores;
  const int count = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : kFewest;
  mallopt(M_ARENA_MAX, std::max(kFewest, count));
}

}  // namespace attune
