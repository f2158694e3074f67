// Decodes 8-bit elements, VEC at once.
#include "opencl/elements.h"

kernel void decode(const global kv_element* elements, global float* values) {
  const int first = get_global_id(0) * VEC;
  STORE_VEC(load_kv(elements + first), values + first);
}
