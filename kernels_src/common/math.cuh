// The softmax's arithmetic, in base 2: with s' = s * log2(e), exp(s - m) = 2^(s' - m').
#pragma once

constexpr float kLn2 = 0.693147180559945309f;

__device__ inline float MinusInfinity() { return __int_as_float(0xff800000); }

// PTX ISA, "Floating Point Instructions: ex2". 2^-inf is 0.
__device__ inline float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// What exponents are taken against: the running maximum, or 0 while no key has been seen, because -inf - -inf is NaN.
__device__ inline float ExponentBase(float maximum) { return maximum == MinusInfinity() ? 0.0f : maximum; }

// 1 / sum; 0 for a row that saw no key, whose sum and output are 0. A row with a NaN has the sum NaN.
__device__ inline float Reciprocal(float sum) { return sum == 0.0f ? 0.0f : 1.0f / sum; }

// Natural log-sum-exp of a row from its maximum in base 2 and its sum; -inf for a row that saw no key. fmaxf drops
// NaNs from the maximum, the sum keeps them.
__device__ inline float LogSumExp(float maximum, float sum) {
  return sum == 0.0f ? MinusInfinity() : (maximum + log2f(sum)) * kLn2;
}

// Over groups of `kLanes` neighbouring lanes (a power of two); every lane gets the result.
template <int kLanes>
__device__ inline float GroupMax(float x) {
#pragma unroll
  for (int lane = kLanes / 2; lane > 0; lane /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lane));
  return x;
}

template <int kLanes>
__device__ inline float GroupSum(float x) {
#pragma unroll
  for (int lane = kLanes / 2; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  return x;
}
