// What the parameters mean: warpgroups, tiles, shared memory. And the kernel's arguments.
//
// Warpgroup 0 produces: one of its threads hands out work items and starts all copies. The other CONSUMERS warpgroups
// compute, each on 64 query rows. With TEAMS 1 these are different rows of the item's BLOCK_M = 64 x CONSUMERS, all
// against the same tiles of BLOCK_N keys. With TEAMS 2 two consumers have the same 64 rows, take tiles in turn, and
// merge their results at the end (merge.cuh): for items too few to fill the SMs.
//
// PACK_GQA: an item's rows are those of all query heads that share K and V: row i of them is query row i / pack of the
// group's head i % pack.
//
// SPLIT: an item is one of several splits of the keys. Its results go to scratch, where a launch of its own reduces them
// (combine.cuh).
//
// VARLEN, PAGE_SIZE: sequences of lengths of their own, one behind the other, or with their keys in pages
// (sequence.cuh). A tile of keys is then copied in pieces of PIECE rows, none of which lies in two pages.
//
// ONES: products add the weights up, with a panel of ones behind each tile of V. Sums are then of weights as they are
// rounded, which O is made of, too.
//
// A tile in shared memory is a row of panels, as the copy engine writes and wgmma reads them: a panel has kPanel
// columns, so that its row is one span of the swizzle, and all of the tile's rows.
//
//             panel 0           panel 1
//         +---------------+---------------+ ...     row r of panel p: tile + (p * rows + r) * kPanelRowBytes,
//   rows  | kPanel columns|               |         its 16-byte chunks permuted by bits of r
//         +---------------+---------------+ ...
#pragma once

#include "common/element.cuh"

constexpr int kWarpgroup = 128;  // threads
constexpr int kConsumerWarps = CONSUMERS * 4;
constexpr int kThreads = (1 + CONSUMERS) * kWarpgroup;
constexpr int kConsumerRows = 64;
constexpr int kRowGroups = CONSUMERS / TEAMS;
constexpr int kBlockM = kRowGroups * kConsumerRows;

constexpr int kPanel = HEAD_DIM % 64 == 0 ? 64 : 32;
constexpr int kPanels = HEAD_DIM / kPanel;
constexpr int kPanelRowBytes = kPanel * 2;  // 128 or 64: the swizzle
constexpr int kQueryBytes = kConsumerRows * HEAD_DIM * 2;
constexpr int kTileBytes = BLOCK_N * HEAD_DIM * 2;  // of K, or V

static_assert(CONSUMERS >= 1 && CONSUMERS <= 3, "one to three warpgroups compute");
static_assert(HEAD_DIM % 32 == 0 && HEAD_DIM >= 64 && HEAD_DIM <= 256, "whole panels, and wgmma's largest N is 256");
static_assert(BLOCK_N % 16 == 0 && BLOCK_N <= 256, "P V takes 16 keys a step, a box has 256 rows at most");
static_assert(STAGES >= 1 && STAGES <= 4, "one to four buffers");
static_assert(!PINGPONG || (OVERLAP && CONSUMERS > 1), "consumers take turns at the products of two tiles");
static_assert(TEAMS == 1 || (TEAMS == 2 && CONSUMERS == 2), "two consumers with the same rows, or none");
static_assert(TEAMS == 1 || (OVERLAP && !PINGPONG), "teams need not have as many tiles as each other");
static_assert(!ONES || HEAD_DIM + 8 <= 256, "wgmma's largest N");
static_assert(STAGES >= TEAMS, "a team holds a buffer while the other passes on to the next");
static_assert(PIECE % 8 == 0 && BLOCK_N % PIECE == 0, "pieces begin where the swizzle does, and make up tiles");
static_assert(PAGE_SIZE == 0 ? PIECE == BLOCK_N : PAGE_SIZE % PIECE == 0, "no piece lies in two pages");

// Registers of a thread: all warpgroups start with the same number, then the producer leaves most of its to the
// consumers. The sum must not grow: who asks for more than the CTA has waits for ever.
constexpr int kMinCtas = CONSUMERS == 1 ? 2 : 1;
constexpr int kLaunchRegisters = 65536 / kMinCtas / kThreads / 8 * 8;
constexpr int kProducerRegisters = CONSUMERS == 3 ? 32 : 40;
constexpr int kConsumerRegisters = CONSUMERS == 1 ? 216 : CONSUMERS == 2 ? 232 : 160;
static_assert(kProducerRegisters + CONSUMERS * kConsumerRegisters <= (1 + CONSUMERS) * kLaunchRegisters, "the CTA's");

// A consumer thread's part of wgmma's sums, of 64 rows and N columns. With row = 16 (warp % 4) + lane / 4, element
// 4 j + 2 half + e is of row + 8 half and column 8 j + 2 (lane % 4) + e.
// PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", D.
using Logits = float[BLOCK_N / 2];
constexpr int kOutputColumns = HEAD_DIM + (ONES ? 8 : 0);
using Outputs = float[kOutputColumns / 2];  // with ONES the last eight columns are the row's sum, each of them
// P, as wgmma's operand A of 16 keys a step: four words each.
using Weights = unsigned[BLOCK_N / 4];

// Strides in elements.
struct Arguments {
  Element* o;
  float* lse;          // [batch][query head][row], VARLEN: [query head][row of all sequences]; or null
  float* partial_o;    // SPLIT: [split][batch][query head][row][HEAD_DIM], not yet divided by the sums
  float2* partial_ml;  // SPLIT: maximum in base 2 and sum of [split][batch][query head][row]
  unsigned* counter;   // of the work queue; null: items blockIdx.x, blockIdx.x + gridDim.x, ...
  int items, tiles, section, splits;
  int batch, heads;  // heads: of Q, or with PACK_GQA groups of them
  int pack, group;   // pack: query heads of an item; group: of `heads`, those that share K and V
  int seq_q, seq_kv;
  int causal_offset;  // row i sees keys <= i + causal_offset
  int window;         // and, with MASK 2, only the last `window` of those
  float scale;        // log2(e) / sqrt(HEAD_DIM); 1 with SOFTCAP
  float cap_in, cap;  // SOFTCAP: 2 log2(e) / (sqrt(HEAD_DIM) softcap), and log2(e) softcap
  long long o_batch_stride, o_head_stride, o_row_stride;
  const float* sinks;  // SINKS: [query head], in natural units
  const int *q_bounds, *kv_bounds, *kv_lengths, *page_table;
  int bottom_right;  // VARLEN, PAGE_SIZE: each sequence's causal offset is what its keys have more than its queries

  __device__ int Pack() const { return PACK_GQA ? pack : 1; }
  __device__ int Splits() const { return SPLIT ? splits : 1; }
  __device__ long long AllRows() const { return static_cast<long long>(batch) * heads * Pack() * seq_q; }
};
