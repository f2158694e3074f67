// What other instructions cost beside mma.sync: mma m16n8k16 (f16 in, f32 out) with 0 to 3 of another instruction after
// each, in every warp of eight an SM. Prints a table in Markdown: nanoseconds from one mma to the next of an SM's
// quarter, which is one of its four schedulers with its tensor core.
//
//   nvcc -arch=native -O3 -o mma_issue tests/gpu/mma_issue.cu && ./mma_issue
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <vector>

constexpr int kSums = 16;  // independent mma in flight
constexpr int kWarps = 8;  // an SM: two a scheduler
constexpr int kSteps = 4000;

enum class Beside { kFma, kAdd, kMax, kMulImmediate, kSetp, kPack, kExp2, kHalfExp2, kAddInteger, kLdmatrix, kCount };

constexpr const char* kNames[] = {
    "`fma.f32`, two registers",
    "`add.f32`, two registers",
    "`max.f32`, two registers",
    "`mul.f32` with a constant",
    "`setp.gt.f32`, or, constant",
    "`cvt.f16x2.f32`",
    "`ex2.approx.f32`",
    "`ex2.approx.f16x2`",
    "`add.u32`, two registers",
    "`ldmatrix.x4`, no bank conflicts",
};

__device__ void Multiply(float (&sums)[4], const unsigned (&a)[4], unsigned low, unsigned high) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high));
}

struct Operands {
  float x[8];
  unsigned u[8];
  bool above[4];
};

template <Beside kBeside>
__device__ void Run(Operands& o, int i, unsigned shared) {
  float& x = o.x[i % 8];
  const float other = o.x[(i + 3) % 8];
  unsigned& u = o.u[i % 8];
  const unsigned other_u = o.u[(i + 3) % 8];
  if (kBeside == Beside::kFma) asm volatile("fma.rn.f32 %0, %0, %0, %1;" : "+f"(x) : "f"(other));
  if (kBeside == Beside::kAdd) asm volatile("add.f32 %0, %0, %1;" : "+f"(x) : "f"(other));
  if (kBeside == Beside::kMax) asm volatile("max.f32 %0, %0, %1;" : "+f"(x) : "f"(other));
  if (kBeside == Beside::kMulImmediate) asm volatile("mul.f32 %0, %0, 0f3F000000;" : "+f"(x));
  if (kBeside == Beside::kSetp) {
    asm volatile("" : "+f"(x));  // each comparison is one of its own
    o.above[i % 4] |= x > 1e30f;
  }
  if (kBeside == Beside::kPack) asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(x), "f"(other));
  if (kBeside == Beside::kExp2) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  if (kBeside == Beside::kHalfExp2) asm volatile("ex2.approx.f16x2 %0, %0;" : "+r"(u));
  if (kBeside == Beside::kAddInteger) asm volatile("add.u32 %0, %0, %1;" : "+r"(u) : "r"(other_u));
  if (kBeside == Beside::kLdmatrix) {
    unsigned to[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared + i % 4 * 512));
  }
}

template <Beside kBeside, int kEach>
__global__ void Loop(float* out, int steps, unsigned seed) {
  __shared__ __align__(128) unsigned char tile[kWarps * 2048];
  const unsigned shared =
      static_cast<unsigned>(__cvta_generic_to_shared(tile)) + threadIdx.x / 32 * 2048 + threadIdx.x % 32 * 16;
  float sums[kSums][4];
  for (auto& sum : sums)
    for (float& x : sum) x = threadIdx.x;
  const unsigned a[4] = {seed, seed + 1, seed + 2, seed + 3};
  Operands o = {};
  for (int i = 0; i < 8; ++i) o.x[i] = 1.0f / (i + 2 + threadIdx.x), o.u[i] = i + threadIdx.x;
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      Multiply(sums[i], a, seed * 3, seed * 5);
#pragma unroll
      for (int n = 0; n < kEach; ++n) Run<kBeside>(o, i * kEach + n, shared);
    }
  }
  float total = o.above[0] + o.above[1] + o.above[2] + o.above[3];
  for (auto& sum : sums)
    for (float x : sum) total += x;
  for (int i = 0; i < 8; ++i) total += o.x[i] + o.u[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

struct Host {
  float* out;
  int sms;
  cudaEvent_t begin, end;
};

// Median of five runs, in nanoseconds an mma.
template <Beside kBeside, int kEach>
double Time(const Host& host) {
  std::vector<double> times;
  for (int run = 0; run < 6; ++run) {
    cudaEventRecord(host.begin);
    Loop<kBeside, kEach><<<host.sms, kWarps * 32>>>(host.out, kSteps, 1);
    cudaEventRecord(host.end);
    cudaEventSynchronize(host.end);
    float ms = 0;
    cudaEventElapsedTime(&ms, host.begin, host.end);
    if (run > 0) times.push_back(ms * 1e6 / (double{kSteps} * kSums * kWarps / 4));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

template <int kIndex>
void Rows(const Host& host) {
  constexpr Beside kBeside = static_cast<Beside>(kIndex);
  std::printf("| %s | %.2f | %.2f | %.2f |\n", kNames[kIndex], Time<kBeside, 1>(host), Time<kBeside, 2>(host),
              Time<kBeside, 3>(host));
  if constexpr (kIndex + 1 < static_cast<int>(Beside::kCount)) Rows<kIndex + 1>(host);
}

int main() {
  cudaDeviceProp device;
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
    std::fprintf(stderr, "no CUDA device\n");
    return 1;
  }
  Host host = {nullptr, device.multiProcessorCount};
  cudaMalloc(&host.out, sizeof(float) * host.sms * kWarps * 32);
  cudaEventCreate(&host.begin);
  cudaEventCreate(&host.end);
  std::printf("%s, %d SMs; mma alone: %.2f ns\n\n", device.name, host.sms, Time<Beside::kFma, 0>(host));
  std::printf("| beside each mma | one | two | three |\n|---|---:|---:|---:|\n");
  Rows<0>(host);
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
