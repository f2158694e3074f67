// Work items: a tile of BLOCK_M rows of a head against one split of the keys that the tile sees.
#pragma once

#include "common/work.cuh"
#include "sequence.cuh"

struct Item {
  int tile, split, head;
  Sequence sequence;
};

// Order: sections of `section` heads; in a section tile by tile, for each its splits, for each the heads. Section 1
// keeps a head's tiles together. A longer one starts the tiles that see the most keys first, over as many heads as have
// their K and V in L2 together. With a mask a head's last tiles, which see the most, come first.
__device__ inline Item ItemOf(int index, const Arguments& t) {
  const unsigned per_section = static_cast<unsigned>(t.section) * t.tiles * t.splits;
  const unsigned section = index / per_section;
  const unsigned rest = index % per_section;
  const unsigned first = section * t.section;
  const unsigned heads = min(static_cast<unsigned>(t.section), static_cast<unsigned>(t.batch * t.heads) - first);
  const unsigned head = first + rest % heads;
  const int tile = rest / heads / t.splits;
  Item item;
  item.tile = MASK ? t.tiles - 1 - tile : tile;
  item.split = rest / heads % t.splits;
  item.head = head % t.heads;
  item.sequence = SequenceOf(head / t.heads, t);
  return item;
}

// Whether the item's tile lies behind its sequence's last row.
__device__ inline bool IsPastEnd(const Item& item, const Arguments& t) {
  return item.tile * BLOCK_M >= item.sequence.Rows(t);
}

// With 8-bit K and V: where an item's scale is.
__device__ inline long long ScaleIndex(const Item& item, const HeadStrides& strides, const Arguments& t) {
  return item.sequence.batch * strides.batch + item.head / t.group * strides.head;
}

// Row `row` of an item's head: with packed heads, which query head and which of its rows.
struct Query {
  int head, row;
};

__device__ inline Query QueryOf(int head, int row, const Arguments& t) {
  if (!PACK_GQA) return {head, row};
  const unsigned pack = t.pack;
  return {static_cast<int>(head * pack + row % pack), static_cast<int>(row / pack)};
}

// Keys [begin, end) that a query row sees; none when end <= begin.
struct Keys {
  int begin, end;
};

__device__ inline Keys KeysOf(int query_row, const Sequence& sequence, const Arguments& t) {
  if (!MASK) return {0, sequence.seq_kv};
  const int last = query_row + sequence.causal_offset;  // may be negative
  return {MASK == 2 ? max(0, last - t.window + 1) : 0, min(sequence.seq_kv, last + 1)};
}

// The key tiles [begin, end) of an item, which may be none; those in [whole_begin, whole_end) need no mask.
struct TileRange {
  int begin, end, whole_begin, whole_end;
};

__device__ inline TileRange TilesOf(const Item& item, const Arguments& t) {
  const int first_row = item.tile * BLOCK_M;
  const Sequence& sequence = item.sequence;
  const Keys first = KeysOf(first_row / t.Pack(), sequence, t);
  const Keys last = KeysOf((min(sequence.Rows(t), first_row + BLOCK_M) - 1) / t.Pack(), sequence, t);
  const int begin = first.begin / BLOCK_N;
  const unsigned count = max(0, (last.end + BLOCK_N - 1) / BLOCK_N - begin);
  const unsigned splits = t.splits;
  TileRange range;
  range.begin = begin + static_cast<int>(count * item.split / splits);
  range.end = begin + static_cast<int>(count * (item.split + 1) / splits);
  range.whole_begin = (last.begin + BLOCK_N - 1) / BLOCK_N;
  range.whole_end = max(0, first.end) / BLOCK_N;
  return range;
}
