// How many arenas the daemon's malloc has. Of glibc's eight a core each keeps what calls have once needed in it: under
// 256 clients the daemon grew from 88 to 130 MiB in half an hour. With one a core look-ups were as fast: 1.004 times,
// 95 % interval 0.971 to 1.036, on two quiet cores (docs/benchmarks/2026-11-27-soak-kills-costs.md).
#ifndef ATTUNE_SERVER_DAEMON_MEMORY_ARENAS_H_
#define ATTUNE_SERVER_DAEMON_MEMORY_ARENAS_H_

namespace attune {

// One for each core that the process may run on, and two at least, unless MALLOC_ARENA_MAX says how many. To be called
// while there is one thread.
void LimitMemoryArenas();

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_MEMORY_ARENAS_H_
