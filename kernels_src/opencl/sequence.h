// Where a sequence of the batch lies in Q, K, V and O. Compile-time switches: VARLEN (0 or 1) and PAGE_SIZE (0: K and V
// are not paged). q_bounds, kv_bounds, kv_lengths and page_table are v1::BufferRole's, null where the switches are 0.
#ifndef ATTUNE_KERNELS_OPENCL_SEQUENCE_H_
#define ATTUNE_KERNELS_OPENCL_SEQUENCE_H_

// `first`: token of the first row, with VARLEN. `pages`: the sequence's part of the page table.
typedef struct {
  int batch, length, first;
} Queries;
typedef struct {
  int batch, length, first;
  const global int* pages;
} Keys;

// seq_q and seq_kv: every sequence's length, or the longest's.
Queries queries_of(int batch, int seq_q, const global int* q_bounds) {
  Queries queries = {batch, seq_q, 0};
#if VARLEN
  queries.first = q_bounds[batch];
  queries.length = q_bounds[batch + 1] - queries.first;
#endif
  return queries;
}

Keys keys_of(int batch, int seq_kv, const global int* kv_bounds, const global int* kv_lengths,
             const global int* page_table) {
  Keys keys = {batch, seq_kv, 0, 0};
#if PAGE_SIZE > 0
  keys.pages = page_table + (long)batch * ((seq_kv + PAGE_SIZE - 1) / PAGE_SIZE);
  keys.length = kv_lengths[batch];
#elif VARLEN
  keys.first = kv_bounds[batch];
  keys.length = kv_bounds[batch + 1] - keys.first;
#endif
  return keys;
}

// Elements before the first row of a head.
long q_start_of(Queries queries, int head, long batch_stride, long head_stride, long row_stride) {
  return (VARLEN ? queries.first * row_stride : queries.batch * batch_stride) + head * head_stride;
}
long kv_start_of(Keys keys, int head_kv, long batch_stride, long head_stride, long row_stride) {
  return (PAGE_SIZE > 0 ? 0 : VARLEN ? keys.first * row_stride : keys.batch * batch_stride) + head_kv * head_stride;
}

// A key's row, counted from kv_start_of.
long key_row(Keys keys, int key) {
#if PAGE_SIZE > 0
  return (long)keys.pages[key / PAGE_SIZE] * PAGE_SIZE + key % PAGE_SIZE;
#else
  return key;
#endif
}

// LSE is [batch, heads_q, seq_q]; with VARLEN [heads_q, total_q].
long lse_start_of(Queries queries, int batches, int head, int heads_q, const global int* q_bounds) {
#if VARLEN
  return (long)head * q_bounds[batches] + queries.first;
#else
  return ((long)queries.batch * heads_q + head) * queries.length;
#endif
}

#endif  // ATTUNE_KERNELS_OPENCL_SEQUENCE_H_
