// An array between pages that may not be touched: reading or writing past its end, or far before it, ends the process.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "cta.h"

namespace emulation {

template <class T>
class Guarded {
 public:
  // Zeros. Memory is taken where it is touched, so that an array may be larger than what the machine has.
  explicit Guarded(size_t count) : count_(count) {
    const size_t bytes = count * sizeof(T);  // not rounded up: an array ends exactly at the page behind it
    const size_t inner = (bytes + kPage - 1) / kPage * kPage;
    mapped_ = inner + 2 * kPage;
    void* const memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) Fail("no %zu bytes of address space", mapped_);
    memory_ = static_cast<char*>(memory);
    if (inner > 0 && mprotect(memory_ + kPage, inner, PROT_READ | PROT_WRITE) != 0) Fail("no %zu bytes", inner);
    begin_ = reinterpret_cast<T*>(memory_ + kPage + inner - bytes);
  }
  ~Guarded() { munmap(memory_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() { return begin_; }
  size_t size() const { return count_; }
  T& operator[](size_t i) { return begin_[i]; }
  const T& operator[](size_t i) const { return begin_[i]; }
  T* begin() { return begin_; }
  T* end() { return begin_ + count_; }

 private:
  static constexpr size_t kPage = 4096;
  size_t count_, mapped_;
  char* memory_;
  T* begin_;
};

}  // namespace emulation
