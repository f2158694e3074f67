// The elements of Q, K, V and O: f16 or, with -DBF16=1, bf16; computed with as float. VEC of them are one `vec`.
// f16 goes through vload_half and vstore_half, which every device has; bf16 is the upper half of a float.
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

#if BF16

#if VEC == 1
typedef uint uvec;
#define LOAD_RAW(p) ((uint) * (p))
#define STORE_RAW(x, p) (*(p) = (ushort)(x))
#define AS_UVEC(x) as_uint(x)
#define AS_VEC(x) as_float(x)
#else
typedef JOIN(uint, VEC) uvec;
#define LOAD_RAW(p) JOIN(convert_uint, VEC)(JOIN(vload, VEC)(0, p))
#define STORE_RAW(x, p) JOIN(vstore, VEC)(JOIN(convert_ushort, VEC)(x), 0, p)
#define AS_UVEC(x) JOIN(as_uint, VEC)(x)
#define AS_VEC(x) JOIN(as_float, VEC)(x)
#endif

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

#endif  // ATTUNE_KERNELS_OPENCL_ELEMENTS_H_
