// Attention forward with an online softmax (Milakov and Gimelshein, 2018; FlashAttention-2, algorithm 1).
//
// A work-group takes a tile of BLOCK_M query rows and walks over its share of the keys, BLOCK_N at a time:
//   S = Q K^T * scale * log2(e)             scores, masked to -inf
//   m' = max(m, rowmax(S))                  running maximum
//   P = 2^(S - m'), a = 2^(m - m')
//   l = l * a + rowsum(P), O = O * a + P V
// and ends with O / l. With kv_splits > 1 it writes m, l and O (fp32) instead, and `combine` joins the splits.
//
// LANES work-items share ROWS = BLOCK_M * LANES / THREADS rows; their vectors of VEC floats alternate:
//   scores  [ROWS][BLOCK_N]   lane 0: keys 0..VEC-1, lane 1: keys VEC..2*VEC-1, ...
//   output  [ROWS][HEAD_DIM]  likewise over columns
// P goes from the one to the other through local memory. With LOCAL_KV, K and V go through local memory as float, K
// transposed, so that scores are sums of (broadcast q) * (vector of keys); without it each work-item reads K and V
// where they are and adds up its dot products across the vector.
//
// A work item is (query tile, split, head): one a work-group, or, persistent, popped from a counter. The last tiles
// come first: under a causal mask they are the longest.
//
// The scales of 8-bit K and V are one a head: K's goes into Q, V's into O.
//
// Compile-time switches: WINDOW, SOFTCAP, SINKS (0 or 1) and those of elements.h and sequence.h. Sequences of their own lengths are
// tiled as the longest; what lies behind a sequence's end has no keys to walk over and no rows to write.
#include "opencl/elements.h"
#include "opencl/sequence.h"

#define ROWS (BLOCK_M * LANES / THREADS)
#define KEYS (BLOCK_N / (VEC * LANES))
#define CHUNKS (HEAD_DIM / (VEC * LANES))

#if BLOCK_M * LANES % THREADS || BLOCK_N % (VEC * LANES) || HEAD_DIM % (VEC * LANES) || THREADS % LANES
#error "the tiles do not divide among the work-items"
#endif

#if LANES > 1
#define LANE_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#else
#define LANE_BARRIER()
#endif

#if LOCAL_KV
#define TILE_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#else
#define TILE_BARRIER() LANE_BARRIER()
#endif

// Loops of conversions and exponentials: unrolled they gain nothing and take seconds to compile.
#define ROLLED _Pragma("unroll 1")

#if VEC == 1
#define COUNTING 0
#elif VEC == 4
#define COUNTING (int4)(0, 1, 2, 3)
#elif VEC == 8
#define COUNTING (int8)(0, 1, 2, 3, 4, 5, 6, 7)
#else
#define COUNTING (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#endif

float sum4(float4 x) { return (x.s0 + x.s2) + (x.s1 + x.s3); }
float max4(float4 x) { return fmax(fmax(x.s0, x.s2), fmax(x.s1, x.s3)); }

float sum_of(vec x) {
#if VEC == 1
  return x;
#elif VEC == 4
  return sum4(x);
#elif VEC == 8
  return sum4(x.lo + x.hi);
#else
  const float8 half_sum = x.lo + x.hi;
  return sum4(half_sum.lo + half_sum.hi);
#endif
}

float max_of(vec x) {
#if VEC == 1
  return x;
#elif VEC == 4
  return max4(x);
#elif VEC == 8
  return max4(fmax(x.lo, x.hi));
#else
  const float8 half_max = fmax(x.lo, x.hi);
  return max4(fmax(half_max.lo, half_max.hi));
#endif
}

// The key columns [visible_begin, visible_end) that `row` sees. mask: 0 none, 1 causal top-left, 2 bottom-right,
// 3 (WINDOW) of those the last `window`.
int visible_end(int row, Queries queries, Keys keys, int mask) {
  const int causal_offset = mask == 1 ? 0 : keys.length - queries.length;
  return mask ? clamp(row + causal_offset + 1, 0, keys.length) : keys.length;
}
int visible_begin(int row, Queries queries, Keys keys, int window) {
  return WINDOW ? max(row + keys.length - queries.length + 1 - window, 0) : 0;
}

// What a row's weighted values are multiplied by in the end: 1 / sum, or 0 for a row that saw no key. With SINKS the
// head's sink, in base 2, first becomes part of the maximum and the sum.
float finish_row(float* row_max, float* row_sum, const global float* sinks, int head) {
  float rescale = 1.0f;
#if SINKS
  const float sink = sinks[head] * M_LOG2E_F;
  const float new_max = fmax(*row_max, sink);
  const float base = new_max == -INFINITY ? 0.0f : new_max;
  rescale = exp2(*row_max - base);
  *row_sum = *row_sum * rescale + exp2(sink - base);
  *row_max = new_max;
#endif
  return *row_sum == 0.0f ? 0.0f : rescale / *row_sum;
}

// The next work item, or `items` when there is none: the work-group's own, then none; or, with a counter, the next that
// nobody has popped. Every work-group pops one item too many, and the last of those pops leaves the counter zero for
// the next run. The barriers are outside of every branch, because PoCL copies all that follows a conditional one.
int next_item(global int* counter, int items, int taken, local int* popped) {
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0) {
    int item = taken ? items : (int)get_group_id(0);
    if (counter) {
      item = atomic_inc(counter);
      if (item == items + (int)get_num_groups(0) - 1) atomic_xchg(counter, 0);
    }
    *popped = item;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return *popped;
}

// Q and O: [batch, heads_q, seq_q, HEAD_DIM], K and V: [batch, heads_kv, seq_kv, HEAD_DIM], by strides in elements.
// lse: fp32 [batch, heads_q, seq_q] or null; where sequences have lengths of their own, as docs/problems.md says.
// partial_o: fp32 [kv_splits, rows, HEAD_DIM], partial_ml: fp32 (m, l) [kv_splits, rows, 2], rows = batch * heads_q *
// seq_q; both null with one split. counter: zero, or null unless persistent. items = query tiles * kv_splits * batch *
// heads_q. q_scale and cap make logits of dot products: q_scale * dot or, with SOFTCAP, cap * tanh(q_scale * dot), both
// in base 2.
kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention(
    const global ushort* q, const global kv_element* k, const global kv_element* v, global ushort* o, global float* lse,
    const global float* sinks, const global int* q_bounds, const global int* kv_bounds, const global int* kv_lengths,
    const global int* page_table, global float* partial_o, global float* partial_ml, global int* counter, int heads_q,
    int group, int seq_q, int seq_kv, int kv_splits, int items, int mask, int window, long q_batch_stride,
    long q_head_stride, long q_row_stride, long kv_batch_stride, long kv_head_stride, long kv_row_stride, float q_scale,
    float cap, const global float* k_scales, const global float* v_scales, long k_scale_batch_stride,
    long k_scale_head_stride, long v_scale_batch_stride, long v_scale_head_stride) {
  local float q_tile[BLOCK_M * HEAD_DIM];
  local float p_tile[BLOCK_M * BLOCK_N];
#if LOCAL_KV
  local float k_tile[HEAD_DIM * BLOCK_N];  // transposed
  local float v_tile[BLOCK_N * HEAD_DIM];
#endif
#if LANES > 1
  local float lane_values[BLOCK_M * LANES];
#endif
  local int popped;

  const int local_id = get_local_id(0);
  const int lane = local_id % LANES;
  const int first_row = local_id / LANES * ROWS;
  const int q_tiles = (seq_q + BLOCK_M - 1) / BLOCK_M;
  const int all_heads = items / (q_tiles * kv_splits);
  const long all_rows = (long)all_heads * seq_q;
  const int split_keys = (seq_kv + BLOCK_N * kv_splits - 1) / (BLOCK_N * kv_splits) * BLOCK_N;

  for (int taken = 0;; ++taken) {
    const int item = next_item(counter, items, taken, &popped);
    if (item >= items) break;
    const int split = item % kv_splits;
    const int q_row0 = (q_tiles - 1 - item / kv_splits % q_tiles) * BLOCK_M;
    const int head_and_batch = item / kv_splits / q_tiles;
    const int head = head_and_batch % heads_q;
    const int batch = head_and_batch / heads_q;
    const Queries queries = queries_of(batch, seq_q, q_bounds);
    const Keys keys = keys_of(batch, seq_kv, kv_bounds, kv_lengths, page_table);
    const long q_start = q_start_of(queries, head, q_batch_stride, q_head_stride, q_row_stride);
    const long kv_start = kv_start_of(keys, head / group, kv_batch_stride, kv_head_stride, kv_row_stride);
    const float k_scale = scale_of(k_scales, batch, head / group, k_scale_batch_stride, k_scale_head_stride);
    const float v_scale = scale_of(v_scales, batch, head / group, v_scale_batch_stride, v_scale_head_stride);
    const int first_visible = visible_begin(q_row0, queries, keys, window) / BLOCK_N * BLOCK_N;
    const int key_begin = max(split * split_keys, first_visible);
    const int last_visible = q_row0 < queries.length ? visible_end(q_row0 + BLOCK_M - 1, queries, keys, mask) : 0;
    const int key_end = min((split + 1) * split_keys, last_visible);

    ROLLED for (int i = local_id; i < BLOCK_M * HEAD_DIM / VEC; i += THREADS) {
      const int row = i / (HEAD_DIM / VEC);
      const int column = i % (HEAD_DIM / VEC) * VEC;
      const vec loaded =
          q_row0 + row < queries.length ? load_elements(q + q_start + (q_row0 + row) * q_row_stride + column) : (vec)0.0f;
      STORE_VEC(loaded * (q_scale * k_scale), q_tile + row * HEAD_DIM + column);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    vec acc[ROWS * CHUNKS];
    vec lane_sum[ROWS];
    float row_max[ROWS];
    for (int r = 0; r < ROWS; ++r) {
      for (int c = 0; c < CHUNKS; ++c) acc[r * CHUNKS + c] = (vec)0.0f;
      lane_sum[r] = (vec)0.0f;
      row_max[r] = -INFINITY;
    }

    for (int key0 = key_begin; key0 < key_end; key0 += BLOCK_N) {
      const int keys_here = min(BLOCK_N, keys.length - key0);
      float tile_max[ROWS], rescale[ROWS];

#if LOCAL_KV
      // What lies past the last key becomes zero: 0 * NaN would not be.
      ROLLED for (int i = local_id; i < BLOCK_N * HEAD_DIM / VEC; i += THREADS) {
        const int key = i / (HEAD_DIM / VEC);
        const int column = i % (HEAD_DIM / VEC) * VEC;
        const int inside = key < keys_here;
        const long offset = kv_start + (inside ? key_row(keys, key0 + key) : 0) * kv_row_stride + column;
        const vec k_loaded = inside ? load_kv(k + offset) : (vec)0.0f;
        STORE_VEC(inside ? load_kv(v + offset) : (vec)0.0f, v_tile + key * HEAD_DIM + column);
        float parts[VEC];
        STORE_VEC(k_loaded, parts);
        for (int e = 0; e < VEC; ++e) k_tile[(column + e) * BLOCK_N + key] = parts[e];
      }
      barrier(CLK_LOCAL_MEM_FENCE);

      vec s[ROWS * KEYS];
      for (int i = 0; i < ROWS * KEYS; ++i) s[i] = (vec)0.0f;
#pragma unroll UNROLL
      for (int d = 0; d < HEAD_DIM; ++d) {
        for (int c = 0; c < KEYS; ++c) {
          const vec key_vec = LOAD_VEC(k_tile + d * BLOCK_N + (c * LANES + lane) * VEC);
          for (int r = 0; r < ROWS; ++r) {
            s[r * KEYS + c] = fma((vec)q_tile[(first_row + r) * HEAD_DIM + d], key_vec, s[r * KEYS + c]);
          }
        }
      }
      for (int r = 0; r < ROWS; ++r) {
        for (int c = 0; c < KEYS; ++c) {
          STORE_VEC(s[r * KEYS + c], p_tile + (first_row + r) * BLOCK_N + (c * LANES + lane) * VEC);
        }
      }
#else
      ROLLED for (int i = 0; i < BLOCK_N / LANES; ++i) {
        const int key = (i / VEC * LANES + lane) * VEC + i % VEC;
        vec dots[ROWS];
        for (int r = 0; r < ROWS; ++r) dots[r] = (vec)0.0f;
        if (key < keys_here) {
          const global kv_element* k_row = k + kv_start + key_row(keys, key0 + key) * kv_row_stride;
#pragma unroll UNROLL
          for (int d = 0; d < HEAD_DIM; d += VEC) {
            const vec columns = load_kv(k_row + d);
            for (int r = 0; r < ROWS; ++r) {
              dots[r] = fma(LOAD_VEC(q_tile + (first_row + r) * HEAD_DIM + d), columns, dots[r]);
            }
          }
        }
        for (int r = 0; r < ROWS; ++r) p_tile[(first_row + r) * BLOCK_N + key] = sum_of(dots[r]);
      }
#endif

      ROLLED for (int r = 0; r < ROWS; ++r) {
        const int end = visible_end(q_row0 + first_row + r, queries, keys, mask) - key0;
        const int begin = visible_begin(q_row0 + first_row + r, queries, keys, window) - key0;
        local float* scores = p_tile + (first_row + r) * BLOCK_N;
        vec most = (vec)-INFINITY;
        ROLLED for (int c = 0; c < KEYS; ++c) {
          const int first = (c * LANES + lane) * VEC;
          vec s = LOAD_VEC(scores + first);
#if SOFTCAP
          s = cap * tanh(s);
#endif
          s = select((vec)-INFINITY, s, first + COUNTING < (ivec)end);
#if WINDOW
          s = select((vec)-INFINITY, s, first + COUNTING >= (ivec)begin);
#endif
          STORE_VEC(s, scores + first);
          most = fmax(most, s);
        }
        tile_max[r] = max_of(most);
#if LANES > 1
        lane_values[(first_row + r) * LANES + lane] = tile_max[r];
#endif
      }
      LANE_BARRIER();

      ROLLED for (int r = 0; r < ROWS; ++r) {
#if LANES > 1
        for (int i = 0; i < LANES; ++i) tile_max[r] = fmax(tile_max[r], lane_values[(first_row + r) * LANES + i]);
#endif
        const float new_max = fmax(row_max[r], tile_max[r]);
        const float base = new_max == -INFINITY ? 0.0f : new_max;  // -inf minus -inf is NaN
        rescale[r] = exp2(row_max[r] - base);
        row_max[r] = new_max;
        local float* scores = p_tile + (first_row + r) * BLOCK_N;
        vec sum = lane_sum[r] * rescale[r];
        ROLLED for (int c = 0; c < KEYS; ++c) {
          const int first = (c * LANES + lane) * VEC;
          const vec p = exp2(LOAD_VEC(scores + first) - base);
          sum += p;
          STORE_VEC(p, scores + first);
        }
        lane_sum[r] = sum;
      }
      LANE_BARRIER();

      for (int r = 0; r < ROWS; ++r) {
        for (int c = 0; c < CHUNKS; ++c) acc[r * CHUNKS + c] *= rescale[r];
      }
#pragma unroll UNROLL
      for (int j = 0; j < keys_here; ++j) {
#if !LOCAL_KV
        const global kv_element* v_row = v + kv_start + key_row(keys, key0 + j) * kv_row_stride;
#endif
        for (int c = 0; c < CHUNKS; ++c) {
#if LOCAL_KV
          const vec columns = LOAD_VEC(v_tile + j * HEAD_DIM + (c * LANES + lane) * VEC);
#else
          const vec columns = load_kv(v_row + (c * LANES + lane) * VEC);
#endif
          for (int r = 0; r < ROWS; ++r) {
            acc[r * CHUNKS + c] = fma((vec)p_tile[(first_row + r) * BLOCK_N + j], columns, acc[r * CHUNKS + c]);
          }
        }
      }
      TILE_BARRIER();
    }

    float row_sum[ROWS];
    ROLLED for (int r = 0; r < ROWS; ++r) {
      row_sum[r] = sum_of(lane_sum[r]);
#if LANES > 1
      lane_values[(first_row + r) * LANES + lane] = row_sum[r];
#endif
    }
    LANE_BARRIER();
#if LANES > 1
    for (int r = 0; r < ROWS; ++r) {
      row_sum[r] = 0.0f;
      for (int i = 0; i < LANES; ++i) row_sum[r] += lane_values[(first_row + r) * LANES + i];
    }
#endif
    // Each work-item's part of O takes the place of Q, for loops that are not unrolled to read it from.
    for (int r = 0; r < ROWS; ++r) {
      for (int c = 0; c < CHUNKS; ++c) {
        STORE_VEC(acc[r * CHUNKS + c] * v_scale, q_tile + (first_row + r) * HEAD_DIM + (c * LANES + lane) * VEC);
      }
    }
    ROLLED for (int r = 0; r < ROWS; ++r) {
      const int row = q_row0 + first_row + r;
      if (row >= queries.length) break;
      const local float* sums = q_tile + (first_row + r) * HEAD_DIM;
      if (kv_splits > 1) {
        const long slot = split * all_rows + (long)head_and_batch * seq_q + row;
        ROLLED for (int c = lane * VEC; c < HEAD_DIM; c += LANES * VEC) {
          STORE_VEC(LOAD_VEC(sums + c), partial_o + slot * HEAD_DIM + c);
        }
        if (lane == 0) vstore2((float2)(row_max[r], row_sum[r]), slot, partial_ml);
      } else {
        const float scale = finish_row(&row_max[r], &row_sum[r], sinks, head);
        ROLLED for (int c = lane * VEC; c < HEAD_DIM; c += LANES * VEC) {
          store_elements(LOAD_VEC(sums + c) * scale, o + q_start + row * q_row_stride + c);
        }
        if (lse && lane == 0) {
          lse[lse_start_of(queries, all_heads / heads_q, head, heads_q, q_bounds) + row] =
              (row_max[r] + log2(row_sum[r])) * M_LN2_F;
        }
      }
    }
  }
}

// Joins the splits of each row, in their order: O = sum 2^(m_s - m) O_s / sum 2^(m_s - m) l_s, m = max m_s. A
// work-group takes COMBINE_ROWS rows, a work-item VEC columns of one.
kernel __attribute__((reqd_work_group_size(COMBINE_ROWS * HEAD_DIM / VEC, 1, 1))) void combine(
    const global float* partial_o, const global float* partial_ml, global ushort* o, global float* lse,
    const global float* sinks, const global int* q_bounds, int heads_q, int seq_q, int kv_splits, long all_rows,
    long q_batch_stride, long q_head_stride, long q_row_stride) {
  const int local_id = get_local_id(0);
  const int column = local_id % (HEAD_DIM / VEC) * VEC;
  const long all_row = (long)get_group_id(0) * COMBINE_ROWS + local_id / (HEAD_DIM / VEC);
  if (all_row >= all_rows) return;
  const int row = all_row % seq_q;
  const int head = all_row / seq_q % heads_q;
  const int batches = all_rows / seq_q / heads_q;
  const Queries queries = queries_of(all_row / seq_q / heads_q, seq_q, q_bounds);
  if (row >= queries.length) return;

  float row_max = -INFINITY;
  ROLLED for (int i = 0; i < kv_splits; ++i) row_max = fmax(row_max, partial_ml[(i * all_rows + all_row) * 2]);
  const float base = row_max == -INFINITY ? 0.0f : row_max;
  float row_sum = 0.0f;
  vec acc = (vec)0.0f;
  ROLLED for (int i = 0; i < kv_splits; ++i) {
    const long slot = i * all_rows + all_row;
    const float weight = exp2(partial_ml[slot * 2] - base);
    row_sum += weight * partial_ml[slot * 2 + 1];
    acc += weight * LOAD_VEC(partial_o + slot * HEAD_DIM + column);
  }
  const float scale = finish_row(&row_max, &row_sum, sinks, head);
  const long start = q_start_of(queries, head, q_batch_stride, q_head_stride, q_row_stride) + row * q_row_stride;
  store_elements(acc * scale, o + start + column);
  if (lse && column == 0) {
    lse[lse_start_of(queries, batches, head, heads_q, q_bounds) + row] = (row_max + log2(row_sum)) * M_LN2_F;
  }
}
