// The elements of Q, K, V and O: f16 or, with -DBF16=1, bf16; computed with as float. VEC of them are one `vec`.
// f16 goes through vload_half and vstore_half, which every device has; bf16 is the upper half of a float.
// K's and V's are others with -DKV_DTYPE: 1 e4m3, 2 e5m2 (docs/problems.md). Those stand for element * scale.
#ifndef ATTUNE_KERNELS_OPENCL_ELEMENTS_H_
#define ATTUNE_KERNELS_OPENCL_ELEMENTS_H_

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#if VEC == 1
typedef float vec;
typedef int ivec;
#define LOAD_VEC(p) (*(p))
#define STORE_VEC(x, p) (*(p) = (x))
#else
typedef JOIN(float, VEC) vec;
typedef JOIN(int, VEC) ivec;
#define LOAD_VEC(p) JOIN(vload, VEC)(0, p)
#define STORE_VEC(x, p) JOIN(vstore, VEC)(x, 0, p)
#endif

#if VEC == 1
typedef uint uvec;
#define LOAD_RAW(p) ((uint) * (p))
#define STORE_RAW(x, p) (*(p) = (ushort)(x))
#define AS_UVEC(x) as_uint(x)
#define AS_VEC(x) as_float(x)
#define TO_VEC(x) ((float)(x))
#else
typedef JOIN(uint, VEC) uvec;
#define LOAD_RAW(p) JOIN(convert_uint, VEC)(JOIN(vload, VEC)(0, p))
#define STORE_RAW(x, p) JOIN(vstore, VEC)(JOIN(convert_ushort, VEC)(x), 0, p)
#define AS_UVEC(x) JOIN(as_uint, VEC)(x)
#define AS_VEC(x) JOIN(as_float, VEC)(x)
#define TO_VEC(x) JOIN(convert_float, VEC)(x)
#endif

#if BF16

vec load_elements(const global ushort* p) { return AS_VEC(LOAD_RAW(p) << 16); }

// Round to nearest even; a NaN stays one.
void store_elements(vec x, global ushort* p) {
  const uvec bits = AS_UVEC(x);
  const uvec rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  STORE_RAW(select(rounded, (uvec)0x7fc0u, isnan(x)), p);
}

#else

#if VEC == 1
vec load_elements(const global ushort* p) { return vload_half(0, (const global half*)p); }
void store_elements(vec x, global ushort* p) { vstore_half_rte(x, 0, (global half*)p); }
#else
vec load_elements(const global ushort* p) { return JOIN(vload_half, VEC)(0, (const global half*)p); }
void store_elements(vec x, global ushort* p) { JOIN(JOIN(vstore_half, VEC), _rte)(x, 0, (global half*)p); }
#endif

#endif

#if KV_DTYPE

typedef uchar kv_element;
#if KV_DTYPE == 1
#define FLOAT8_MANTISSA 3
#define FLOAT8_SPECIAL 0x7fu  // the least magnitude that is no number
#define FLOAT8_LEAST 0x1p-9f
#else
#define FLOAT8_MANTISSA 2
#define FLOAT8_SPECIAL 0x7cu
#define FLOAT8_LEAST 0x1p-16f  // subnormal
#endif
#define FLOAT8_BIAS (KV_DTYPE == 1 ? 7u : 15u)

// Without their scale. What is special in e5m2 has its mantissa's bits: infinity none, NaN some. e4m3's NaN has all.
vec load_kv(const global kv_element* p) {
  const uvec raw = LOAD_RAW(p);
  const uvec magnitude = raw & 0x7fu;
  const uvec widened = magnitude << (23 - FLOAT8_MANTISSA);
  const uvec subnormal = AS_UVEC(TO_VEC(magnitude) * FLOAT8_LEAST);
  uvec bits = widened + ((127u - FLOAT8_BIAS) << 23);
  bits = select(bits, subnormal, magnitude < (uvec)(1u << FLOAT8_MANTISSA));
  bits = select(bits, widened | 0x7f800000u, magnitude >= (uvec)FLOAT8_SPECIAL);
  return AS_VEC(bits | (raw & 0x80u) << 24);
}

#else

typedef ushort kv_element;
#define load_kv load_elements

#endif

// A KV head's scale; 1 for elements without.
float scale_of(const global float* scales, int batch, int head_kv, long batch_stride, long head_stride) {
#if KV_DTYPE
  return scales[batch * batch_stride + head_kv * head_stride];
#else
  return 1.0f;
#endif
}

#endif  // ATTUNE_KERNELS_OPENCL_ELEMENTS_H_
