// A sequence of the batch: how long it is and where its rows lie.
//
//   VARLEN      rows of the sequences one behind the other: q_bounds and kv_bounds say where each begins and ends
//   PAGE_SIZE   keys in pages anywhere: page_table names the pages of each, in order; kv_lengths counts its keys
//
// With neither all sequences are alike: everything here is then an argument of the kernel, and nothing is read.
#pragma once

#include "shape.cuh"

struct Sequence {
  int batch;
  int first_query, seq_q;  // the first is used with VARLEN alone
  int first_key, seq_kv;
  int causal_offset;  // row i sees keys <= i + causal_offset
  const int* pages;   // of its keys

  __device__ int Rows(const Arguments& t) const { return seq_q * t.Pack(); }  // of a head
};

constexpr int kPageKeys = PAGE_SIZE > 0 ? PAGE_SIZE : 1;

// The queries' part alone.
__device__ inline Sequence QueriesOf(int batch, const Arguments& t) {
  if (!VARLEN) return {batch, 0, t.seq_q};
  const int begin = t.q_bounds[batch];
  return {batch, begin, t.q_bounds[batch + 1] - begin};
}

__device__ inline Sequence SequenceOf(int batch, const Arguments& t) {
  Sequence sequence = QueriesOf(batch, t);
  if (PAGE_SIZE) {
    sequence.seq_kv = t.kv_lengths[batch];
    sequence.pages = t.page_table + static_cast<long long>(batch) * ((t.seq_kv + kPageKeys - 1) / kPageKeys);
  } else if (VARLEN) {
    sequence.first_key = t.kv_bounds[batch];
    sequence.seq_kv = t.kv_bounds[batch + 1] - sequence.first_key;
  } else {
    sequence.seq_kv = t.seq_kv;
  }
  const bool own_offset = VARLEN || PAGE_SIZE;
  sequence.causal_offset = !own_offset ? t.causal_offset : t.bottom_right ? sequence.seq_kv - sequence.seq_q : 0;
  return sequence;
}

// Where a key lies in K or V from where its head begins in page 0.
__device__ inline long long PageOffset(const Sequence& sequence, int key, const Strides& strides) {
  const unsigned number = key;
  const long long page = sequence.pages[number / kPageKeys];
  return page * strides.batch + static_cast<long long>(number % kPageKeys) * strides.row;
}
