// Host loops over tensors of tens of millions of elements, spread over the cores.
#ifndef ATTUNE_SERVER_VERIFY_PARALLEL_H_
#define ATTUNE_SERVER_VERIFY_PARALLEL_H_

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace attune::verify {

// Chunks that ParallelChunks makes of `n` elements, none smaller than `grain` but the last.
inline int64_t ChunkCount(int64_t n, int64_t grain) {
  const int64_t cores = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 16);
  return std::clamp<int64_t>(n / grain, 1, cores);
}

// Calls body(chunk, begin, end) once a chunk, each on a thread of its own; returns when all have.
template <typename Body>
void ParallelChunks(int64_t n, int64_t grain, Body&& body) {
  const int64_t chunks = ChunkCount(n, grain);
  std::vector<std::thread> threads;
  for (int64_t chunk = 1; chunk < chunks; ++chunk) {
    threads.emplace_back([&body, n, chunk, chunks] { body(chunk, n * chunk / chunks, n * (chunk + 1) / chunks); });
  }
  body(int64_t{0}, int64_t{0}, n / chunks);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_PARALLEL_H_
