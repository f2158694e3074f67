// Work items: a tile of kBlockM rows of a head against one split of the keys that these see.
#pragma once

#include "sequence.cuh"

struct Item {
  int tile, split, head;
  Sequence sequence;
};

// Order: sections of `section` heads; in a section tile by tile, for each its splits, for each the heads. Section 1
// keeps a head's tiles together. A longer one starts the tiles that see the most keys first, over as many heads as have
// their K and V in L2 together. With a mask a head's last tiles, which see the most, come first.
__device__ inline Item ItemOf(int index, const Arguments& t) {
  const unsigned per_section = static_cast<unsigned>(t.section) * t.tiles * t.Splits();
  const unsigned section = index / per_section;
  const unsigned rest = index % per_section;
  const unsigned first = section * t.section;
  const unsigned heads = min(static_cast<unsigned>(t.section), static_cast<unsigned>(t.batch * t.heads) - first);
  const unsigned head = first + rest % heads;
  const int tile = rest / heads / t.Splits();
  const int split = SPLIT ? rest / heads % t.Splits() : 0;
  return {MASK ? t.tiles - 1 - tile : tile, split, static_cast<int>(head % t.heads), SequenceOf(head / t.heads, t)};
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

// Its number among all: [batch][query head][row], as many rows a sequence as the longest may have.
__device__ inline long long RowIndex(const Item& item, const Query& query, const Arguments& t) {
  return (static_cast<long long>(item.sequence.batch) * t.heads * t.Pack() + query.head) * t.seq_q + query.row;
}

// Keys [begin, end) that a row of a head sees; none when end <= begin.
struct Keys {
  int begin, end;
};

__device__ inline Keys KeysOf(int row, const Item& item, const Arguments& t) {
  if (!MASK) return {0, item.sequence.Keys(t)};
  const int last = row / t.Pack() + item.sequence.CausalOffset(t);  // may be negative
  return {MASK == 2 ? max(0, last - t.window + 1) : 0, min(item.sequence.Keys(t), last + 1)};
}

// Tiles of keys [begin, end), which may be none.
struct TileRange {
  int begin, end;
};

// Those that any of `count` rows sees.
__device__ inline TileRange TilesSeen(int first_row, int count, const Item& item, const Arguments& t) {
  const int rows = item.sequence.Rows(t);
  if (first_row >= rows) return {0, 0};
  const int begin = KeysOf(first_row, item, t).begin / BLOCK_N;
  const int end = KeysOf(min(rows, first_row + count) - 1, item, t).end;
  return {begin, max(begin, (end + BLOCK_N - 1) / BLOCK_N)};
}

// The item's: what its rows see, or its split of it.
__device__ inline TileRange TilesOf(const Item& item, const Arguments& t) {
  const TileRange seen = TilesSeen(item.tile * kBlockM, kBlockM, item, t);
  if (!SPLIT) return seen;
  const long long count = seen.end - seen.begin;
  return {seen.begin + static_cast<int>(count * item.split / t.splits),
          seen.begin + static_cast<int>(count * (item.split + 1) / t.splits)};
}

// Those that all 64 rows of a consumer see whole: they need no mask.
__device__ inline TileRange WholeTilesOf(int first_row, const Item& item, const Arguments& t) {
  const Keys first = KeysOf(first_row, item, t);
  const Keys last = KeysOf(min(item.sequence.Rows(t), first_row + kConsumerRows) - 1, item, t);
  return {(last.begin + BLOCK_N - 1) / BLOCK_N, max(0, first.end) / BLOCK_N};
}
