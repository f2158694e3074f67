#include "cta.h"

#include <ucontext.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

// What kernels declare as `extern __shared__`: as much as an SM has, of which a launch may use `dynamic_bytes`.
alignas(128) thread_local unsigned char dynamic[227 * 1024];

namespace emulation {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr unsigned kDynamicAddress = 1 << 20;

}  // namespace

Cta* running = nullptr;

void Fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("emulation: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputs("\n", stderr);
  va_end(arguments);
  std::_Exit(1);
}

void Cta::Enter() {
  running->kernel_();
  running->current_->done = true;
  _longjmp(running->scheduler_, 1);
}

void Cta::Resume(Fiber& fiber) {
  current_ = &fiber;
  if (_setjmp(scheduler_) != 0) return;
  if (fiber.started) _longjmp(fiber.context, 1);
  fiber.started = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, &Cta::Enter, 0);
  setcontext(&context);
}

void Cta::Arrive(Barrier& barrier, int threads) {
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    ++barrier.generation;
    return;
  }
  current_->waiting = &barrier;
  current_->generation = barrier.generation;
  if (_setjmp(current_->context) == 0) _longjmp(scheduler_, 1);
}

bool Cta::RunWarp(int warp) {
  bool moved = false;
  for (int lane = 0; lane < 32; ++lane) {
    Fiber& fiber = fibers_[warp * 32 + lane];
    if (fiber.done || (fiber.waiting != nullptr && fiber.waiting->generation == fiber.generation)) continue;
    fiber.waiting = nullptr;
    Resume(fiber);
    moved = true;
    if (fiber.done) --left_;
  }
  return moved;
}

void Cta::Run(int threads, unsigned block, unsigned grid, size_t dynamic_bytes, std::function<void()> kernel) {
  if (dynamic_bytes > sizeof(dynamic)) Fail("%zu bytes of shared memory", dynamic_bytes);
  running = this;
  kernel_ = std::move(kernel);
  threads_ = left_ = threads;
  block_ = block, grid_ = grid;
  dynamic_bytes_ = dynamic_bytes;
  std::memset(dynamic, 0xff, sizeof(dynamic));  // NaN of every type
  warps_.assign(threads / 32, {});
  for (Barrier& barrier : named_) barrier = {};
  fibers_.resize(threads);
  for (int thread = 0; thread < threads; ++thread) {
    Fiber& fiber = fibers_[thread];
    if (fiber.stack == nullptr) fiber.stack.reset(new char[kStackBytes]);
    fiber.thread = thread;
    fiber.started = fiber.done = false;
    fiber.waiting = nullptr;
    fiber.open.clear();
    fiber.groups.clear();
  }
  std::vector<int> order(threads / 32);
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  while (left_ > 0) {
    bool moved = false;
    std::shuffle(order.begin(), order.end(), random_);
    for (const int warp : order) {
      for (int span = random_() % 200; span >= 0 && RunWarp(warp); --span) moved = true;
    }
    if (!moved) Fail("deadlock: %d of %d threads wait for ever", left_, threads);
  }
  for (Fiber& fiber : fibers_) {
    if (!fiber.open.empty()) Fail("a thread ends with copies that are in no group");
    for (const auto& group : fiber.groups) {
      if (!group.empty()) Fail("a thread ends before its copies");
    }
  }
}

void Cta::Land(Copy& copy) {
  if (copy.landed) return;
  copy.landed = true;
  unsigned char* to = At(copy.to, 16);
  if (copy.valid) {
    std::memcpy(to, copy.from, 16);
  } else {
    std::memset(to, 0, 16);
  }
}

void Cta::StartCopy(const Copy& copy) {
  if (reinterpret_cast<uintptr_t>(copy.from) % 16 != 0) Fail("a copy from a misaligned address");
  At(copy.to, 16);
  Fiber& fiber = *current_;
  fiber.open.push_back(copy);
  if (copy.valid) *static_cast<const volatile char*>(copy.from);  // ends the process where nothing may be read
  if (landing_ == Landing::kAtOnce || (landing_ == Landing::kRandom && random_() % 2 != 0)) Land(fiber.open.back());
}

void Cta::CommitCopies() {
  current_->groups.push_back(std::move(current_->open));
  current_->open.clear();
}

void Cta::WaitCopies(size_t pending) {
  auto& groups = current_->groups;
  while (groups.size() > pending) {
    for (Copy& copy : groups.front()) Land(copy);
    groups.erase(groups.begin());
  }
}

unsigned Cta::Address(const void* pointer) {
  return static_cast<unsigned>(kDynamicAddress + (static_cast<const unsigned char*>(pointer) - dynamic));
}

unsigned char* Cta::At(unsigned address, unsigned bytes) {
  if (address % bytes != 0) Fail("shared address %u is not aligned to %u bytes", address, bytes);
  const unsigned offset = address - kDynamicAddress;
  if (offset < sizeof(dynamic) && offset + bytes > dynamic_bytes_) {
    Fail("shared address %u: the launch has %zu bytes", offset, dynamic_bytes_);
  }
  return dynamic + static_cast<int>(offset);
}

}  // namespace emulation
