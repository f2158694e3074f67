// What device/inspector.h promises, as kernels: NVRTC compiles this text, without any header, when a worker opens its
// device, and tests compile it for the host (check/testing/host_kernels.h), where a grid has one thread.
//
// verify/ has each of these rules a second time, for the host, and compares both at each start (verify/inspection.h).

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define ATTUNE_INLINE static __device__ __forceinline__

static constexpr u64 kCounterStep = 0x9e3779b97f4a7c15u;

// SplitMix64's finaliser.
ATTUNE_INLINE u64 Mix(u64 x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// A thread's first item and its step to the next.
ATTUNE_INLINE u64 First() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }
ATTUNE_INLINE u64 Stride() { return static_cast<u64>(gridDim.x) * blockDim.x; }

ATTUNE_INLINE u64 WarpSum(u64 value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(0xffffffffu, value, distance);
  return value;
}
ATTUNE_INLINE u32 WarpMax(u32 value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const u32 other = __shfl_down_sync(0xffffffffu, value, distance);
    value = other > value ? other : value;
  }
  return value;
}
ATTUNE_INLINE bool LeadsItsWarp() { return threadIdx.x % 32 == 0; }

// Digests ------------------------------------------------------------------------------------------------------------

struct Range {
  u64 address, bytes;
};
struct Ranges {
  Range of[128];
};

// Eight bytes, wherever they lie, zeros behind the last.
ATTUNE_INLINE u64 Word(Range range, u64 word) {
  const u8* bytes = reinterpret_cast<const u8*>(range.address);
  u64 value = 0;
  for (u64 i = 8 * word; i < 8 * word + 8 && i < range.bytes; ++i) {
    value |= static_cast<u64>(bytes[i]) << 8 * (i - 8 * word);
  }
  return value;
}

ATTUNE_INLINE u64 WordDigest(u64 value, u64 key, u64 word) { return Mix(value ^ Mix(key + word * kCounterStep)); }

// Adds the digest of ranges.of[blockIdx.y] to sums[blockIdx.y].
extern "C" __global__ void attune_digest(const Ranges ranges, u64 key, u64* sums) {
  const Range range = ranges.of[blockIdx.y];
  const u64* aligned = reinterpret_cast<const u64*>(range.address);
  const u64 aligned_words = range.address % 8 == 0 ? range.bytes / 8 : 0;
  u64 sum = 0;
#ifdef __CUDACC__
#pragma unroll 4
#endif
  for (u64 i = First(); i < aligned_words; i += Stride()) sum += WordDigest(aligned[i], key, i);
  for (u64 i = aligned_words + First(); i < (range.bytes + 7) / 8; i += Stride()) {
    sum += WordDigest(Word(range, i), key, i);
  }
  sum = WarpSum(sum);
  if (LeadsItsWarp()) atomicAdd(&sums[blockIdx.y], sum);
}

// Comparison ---------------------------------------------------------------------------------------------------------

struct Tally {
  u64 seen, wrong;               // added to
  u32 max_error, max_reference;  // bits of fp32, not negative: ordered as numbers are
};

ATTUNE_INLINE float F16ToFloat(u16 bits) {
  const u32 magnitude = static_cast<u32>(bits & 0x7fff) << 13;
  const u32 finite = __float_as_uint(__fmul_rn(__uint_as_float(magnitude), __uint_as_float(0x77800000u)));  // 2^112
  const u32 value = (bits & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000u : finite;
  return __uint_as_float(value | static_cast<u32>(bits & 0x8000) << 16);
}

enum ElementType { kF16 = 0, kBf16 = 1, kF32 = 2 };

struct alignas(16) Four {
  float of[4];
};

ATTUNE_INLINE float Element(const void* out, int type, u64 i) {
  if (type == kF32) return static_cast<const float*>(out)[i];
  const u16 bits = static_cast<const u16*>(out)[i];
  return type == kBf16 ? __uint_as_float(static_cast<u32>(bits) << 16) : F16ToFloat(bits);
}

// Elements 4 i to 4 i + 3.
ATTUNE_INLINE Four FourOf(const void* out, int type, u64 i) {
  if (type == kF32) return static_cast<const Four*>(out)[i];
  const u64 bits = static_cast<const u64*>(out)[i];
  Four four;
  for (int j = 0; j < 4; ++j) {
    const u16 element = static_cast<u16>(bits >> 16 * j);
    four.of[j] = type == kBf16 ? __uint_as_float(static_cast<u32>(element) << 16) : F16ToFloat(element);
  }
  return four;
}

struct Sums {
  u64 seen, wrong;
  float max_error, max_reference;
};

// NaN is wrong because no comparison with it holds.
ATTUNE_INLINE void Count(float value, float reference, float absolute, float relative, Sums* sums) {
  const float error = fabsf(__fsub_rn(value, reference));
  const float magnitude = fabsf(reference);
  sums->seen += 1;
  sums->wrong += error <= __fadd_rn(absolute, __fmul_rn(relative, magnitude)) ? 0 : 1;
  sums->max_error = error > sums->max_error ? error : sums->max_error;
  sums->max_reference = magnitude > sums->max_reference ? magnitude : sums->max_reference;
}

extern "C" __global__ void attune_compare(const void* out, int type, const float* reference, u64 elements,
                                          float absolute, float relative, Tally* tally) {
  Sums sums = {0, 0, 0, 0};
  for (u64 i = First(); i < elements / 4; i += Stride()) {
    const Four values = FourOf(out, type, i);
    const Four references = reinterpret_cast<const Four*>(reference)[i];
    for (int j = 0; j < 4; ++j) Count(values.of[j], references.of[j], absolute, relative, &sums);
  }
  for (u64 i = elements / 4 * 4 + First(); i < elements; i += Stride()) {
    Count(Element(out, type, i), reference[i], absolute, relative, &sums);
  }
  const u64 seen = WarpSum(sums.seen);
  const u64 wrong = WarpSum(sums.wrong);
  const u32 max_error = WarpMax(__float_as_uint(sums.max_error));
  const u32 max_reference = WarpMax(__float_as_uint(sums.max_reference));
  if (!LeadsItsWarp()) return;
  atomicAdd(&tally->seen, seen);
  atomicAdd(&tally->wrong, wrong);
  atomicMax(&tally->max_error, max_error);
  atomicMax(&tally->max_reference, max_reference);
}

// Inputs -------------------------------------------------------------------------------------------------------------

struct Drawing {
  u64 key, row, other, rows, surely;
};

ATTUNE_INLINE u64 KeyOf(const Drawing& drawing, u64 group) {
  if (drawing.row == 0) return drawing.key;
  const u64 row = group * 4 / drawing.row;
  const bool other = row == drawing.surely || Mix(drawing.rows + row * kCounterStep) % 8 == 0;
  return other ? drawing.other : drawing.key;
}

extern "C" __global__ void attune_draw(u16* to, u64 elements, const u16* table, const Drawing drawing) {
  for (u64 group = First(); group < elements / 4; group += Stride()) {
    const u64 bits = Mix(KeyOf(drawing, group) + group * kCounterStep);
    u64 values = 0;
    for (int i = 0; i < 4; ++i) values |= static_cast<u64>(table[bits >> 16 * i & 0xffff]) << 16 * i;
    reinterpret_cast<u64*>(to)[group] = values;
  }
  const u64 last = elements / 4;
  const u64 bits = Mix(KeyOf(drawing, last) + last * kCounterStep);
  for (u64 i = 4 * last + First(); i < elements; i += Stride()) to[i] = table[bits >> 16 * (i - 4 * last) & 0xffff];
}
