// A sequence of the batch: how long it is and where its rows lie.
//
//   VARLEN      rows of the sequences one behind the other: q_bounds and kv_bounds say where each begins and ends
//   PAGE_SIZE   keys in pages anywhere: page_table names the pages of each, in order; kv_lengths counts its keys
//
// With neither all sequences are alike: everything here is then an argument of the kernel, and nothing is read.
#pragma once

#include "shape.cuh"

constexpr bool kOwnLengths = VARLEN || PAGE_SIZE;
constexpr int kPageKeys = PAGE_SIZE > 0 ? PAGE_SIZE : 1;

struct Sequence {
  int batch;
  int first_query, queries;  // VARLEN
  int first_key, keys;       // kOwnLengths
  const int* pages;          // PAGE_SIZE

  __device__ int Queries(const Arguments& t) const { return VARLEN ? queries : t.seq_q; }
  __device__ int Keys(const Arguments& t) const { return kOwnLengths ? keys : t.seq_kv; }
  __device__ int Rows(const Arguments& t) const { return Queries(t) * t.Pack(); }  // of a head or group
  // Row i sees keys <= i + it.
  __device__ int CausalOffset(const Arguments& t) const {
    if (!kOwnLengths) return t.causal_offset;
    return t.bottom_right ? Keys(t) - Queries(t) : 0;
  }
};

// The queries' part alone.
__device__ inline Sequence QueriesOf(int batch, const int* q_bounds) {
  Sequence sequence = {};
  sequence.batch = batch;
  if (VARLEN) {
    sequence.first_query = q_bounds[batch];
    sequence.queries = q_bounds[batch + 1] - sequence.first_query;
  }
  return sequence;
}

__device__ inline Sequence SequenceOf(int batch, const Arguments& t) {
  Sequence sequence = QueriesOf(batch, t.q_bounds);
  if (PAGE_SIZE) {
    sequence.keys = t.kv_lengths[batch];
    sequence.pages = t.page_table + static_cast<long long>(batch) * ((t.seq_kv + kPageKeys - 1) / kPageKeys);
  } else if (VARLEN) {
    sequence.first_key = t.kv_bounds[batch];
    sequence.keys = t.kv_bounds[batch + 1] - sequence.first_key;
  }
  return sequence;
}

// Rows of a sequence from one on, as a ragged map has them (tensor_copy.cuh): the number of the first among all rows,
// and how many there are. None where the sequence has ended.
struct Slice {
  int first, rows;
};

// VARLEN.
__device__ inline Slice QuerySlice(const Sequence& sequence, int row, const Arguments& t) {
  return {sequence.first_query + row, max(0, sequence.Queries(t) - row)};
}

// kOwnLengths. With pages the slice may go on past its page's end: no piece does.
__device__ inline Slice KeySlice(const Sequence& sequence, int key, const Arguments& t) {
  const int rows = max(0, sequence.Keys(t) - key);
  if (!PAGE_SIZE) return {sequence.first_key + key, rows};
  const unsigned number = key;
  const int page = rows > 0 ? sequence.pages[number / kPageKeys] : 0;  // entries behind the last page mean nothing
  return {page * kPageKeys + static_cast<int>(number % kPageKeys), rows};
}
