// A CTA on the CPU: a fiber for every thread, all in one thread of the process.
//
// A fiber runs until it waits: at a barrier, or at an instruction of its whole warp. Warps take turns in random order
// and for random spans, so that one may be far ahead of another wherever no barrier holds it. Asynchronous copies land
// at once, as late as the waits allow, or each at random, as `landing` says: what is read without waiting, or written
// over what is still in use, then gives wrong numbers.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace emulation {

// Says what the kernel did wrong and ends the process.
[[noreturn]] void Fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

struct Barrier {
  int arrived = 0;
  unsigned generation = 0;  // how often it has opened
};

// A copy to shared memory that has been started; zeros are written when not `valid`.
struct Copy {
  unsigned to;
  const void* from;
  bool valid, landed;
};

enum class Landing { kAtOnce, kLate, kRandom };

// A warp at an instruction: what its lanes give, and what they get when the last has come.
struct Warp {
  Barrier barrier;
  const char* instruction = nullptr;
  alignas(16) unsigned char in[32][32];
  alignas(16) unsigned char out[32][32];
};

struct Fiber {
  int thread;
  std::unique_ptr<char[]> stack;
  jmp_buf context;
  bool started, done;
  const Barrier* waiting;  // null: it can run
  unsigned generation;     // of `waiting`, when it came there
  std::vector<Copy> open;  // not yet in a group
  std::vector<std::vector<Copy>> groups;
};

class Cta {
 public:
  Cta(Landing landing, unsigned seed) : landing_(landing), random_(seed) {}

  // Runs `kernel` in `threads` threads to its end, with `dynamic_bytes` of dynamic shared memory.
  void Run(int threads, unsigned block, unsigned grid, size_t dynamic_bytes, std::function<void()> kernel);

  // For the running fiber.
  Fiber& fiber() { return *current_; }
  Warp& warp() { return warps_[current_->thread / 32]; }
  int lane() const { return current_->thread % 32; }
  void Arrive(Barrier& barrier, int threads);
  void ArriveNamed(int barrier, int threads) { Arrive(named_[barrier], threads); }
  void StartCopy(const Copy& copy);
  void CommitCopies();
  void WaitCopies(size_t pending);

  // Shared memory by its 32-bit address.
  static unsigned Address(const void* pointer);
  unsigned char* At(unsigned address, unsigned bytes);

  int threads() const { return threads_; }
  unsigned block() const { return block_; }
  unsigned grid() const { return grid_; }

 private:
  static void Enter();
  void Resume(Fiber& fiber);
  bool RunWarp(int warp);  // a round of its lanes; false when none could run
  void Land(Copy& copy);

  const Landing landing_;
  std::mt19937 random_;
  std::function<void()> kernel_;
  int threads_ = 0, left_ = 0;
  unsigned block_ = 0, grid_ = 0;
  size_t dynamic_bytes_ = 0;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  Barrier named_[16];
  Fiber* current_ = nullptr;
  jmp_buf scheduler_;
};

// The CTA that runs.
extern Cta* running;

// An instruction of a whole warp. Each lane gives `in`; the last one to come has `evaluate(in, out)`, over arrays of
// the 32 lanes, compute what each lane gets.
template <class Out, class In, class Evaluate>
Out WarpInstruction(const char* name, const In& in, Evaluate evaluate) {
  static_assert(sizeof(In) <= 32 && sizeof(Out) <= 32);
  Warp& warp = running->warp();
  const int lane = running->lane();
  if (warp.barrier.arrived == 0) warp.instruction = name;
  if (warp.instruction != name) Fail("lanes of a warp part: one is at %s, another at %s", warp.instruction, name);
  std::memcpy(warp.in[lane], &in, sizeof(In));
  if (warp.barrier.arrived == 31) {
    In all_in[32];
    Out all_out[32];
    for (int i = 0; i < 32; ++i) std::memcpy(&all_in[i], warp.in[i], sizeof(In));
    evaluate(all_in, all_out);
    for (int i = 0; i < 32; ++i) std::memcpy(warp.out[i], &all_out[i], sizeof(Out));
  }
  running->Arrive(warp.barrier, 32);
  Out out;
  std::memcpy(&out, warp.out[lane], sizeof(Out));
  return out;
}

}  // namespace emulation
