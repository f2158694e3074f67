// What the device reaches at best, each by a kernel that does nothing else. Compiled when the bench starts; no headers.

// The shortest kernel there is.
extern "C" __global__ void empty() {}

// Reads `count` 16-byte words once. Eight independent loads a thread are in flight, neighbouring threads read
// neighbouring words, and nothing is kept in L1. The sum is stored only if it has one value in 2^32, so that the
// compiler cannot drop the loads.
extern "C" __global__ void __launch_bounds__(512) read_all(const uint4* words, long long count, unsigned* sink) {
  constexpr int kInFlight = 8;
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  unsigned sum = 0;
  long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + (kInFlight - 1) * stride < count; i += kInFlight * stride) {
    uint4 word[kInFlight];
#pragma unroll
    for (int n = 0; n < kInFlight; ++n) {
      asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(word[n].x), "=r"(word[n].y), "=r"(word[n].z), "=r"(word[n].w)
                   : "l"(words + i + n * stride));
    }
#pragma unroll
    for (int n = 0; n < kInFlight; ++n) sum ^= word[n].x ^ word[n].y ^ word[n].z ^ word[n].w;
  }
  for (; i < count; i += stride) sum ^= words[i].x ^ words[i].y ^ words[i].z ^ words[i].w;
  if (sum == 0x9e3779b9u) *sink = sum;
}

// `iterations` times kChains independent mma.sync.m16n8k16 (f16 in, f32 out; PTX ISA, "Matrix fragments for
// mma.m16n8k16") a warp, from registers alone. A and B hold normal numbers around 1 with random signs and significands:
// zeros would draw less power and so allow a higher clock.
constexpr int kChains = 8;
extern "C" __global__ void __launch_bounds__(256, 4) multiply(int iterations, float* sink) {
  unsigned random = blockIdx.x * blockDim.x + threadIdx.x + 1;
  const auto halves = [&random] {
    random = random * 1664525u + 1013904223u;
    // Two f16: random sign and significand, exponent of [1/2, 1).
    return (random ^ random >> 16) & 0x83ff83ffu | 0x38003800u;
  };
  unsigned a[4], b[kChains][2];
  float sum[kChains][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = halves();
#pragma unroll
  for (int c = 0; c < kChains; ++c) {
    b[c][0] = halves();
    b[c][1] = halves();
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[c][i] = 0.0f;
  }
  for (int n = 0; n < iterations; ++n) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(sum[c][0]), "+f"(sum[c][1]), "+f"(sum[c][2]), "+f"(sum[c][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[c][0]), "r"(b[c][1]));
    }
  }
  float total = 0.0f;
#pragma unroll
  for (int c = 0; c < kChains; ++c) total += sum[c][0] + sum[c][1] + sum[c][2] + sum[c][3];
  if (total == 1.2345678e30f) *sink = total;
}
