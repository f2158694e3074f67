// Work items: a tile of kBlockM rows of a head, and which tiles of keys its rows see.
#pragma once

#include "shape.cuh"

struct Item {
  int tile, head, batch;
};

// Order: sections of `section` heads; in a section tile by tile, for each tile the heads. Section 1 keeps a head's
// tiles together. A longer one starts the tiles that see the most keys first, over as many heads as have their K and V
// in L2 together. With a mask a head's last tiles, which see the most, come first.
__device__ inline Item ItemOf(int index, const Arguments& t) {
  const unsigned per_section = static_cast<unsigned>(t.section) * t.tiles;
  const unsigned section = index / per_section;
  const unsigned rest = index % per_section;
  const unsigned first = section * t.section;
  const unsigned heads = min(static_cast<unsigned>(t.section), static_cast<unsigned>(t.batch * t.heads) - first);
  const unsigned head = first + rest % heads;
  const int tile = rest / heads;
  return {MASK ? t.tiles - 1 - tile : tile, static_cast<int>(head % t.heads), static_cast<int>(head / t.heads)};
}

// Keys [begin, end) that a query row sees; none when end <= begin.
struct Keys {
  int begin, end;
};

__device__ inline Keys KeysOf(int row, const Arguments& t) {
  if (!MASK) return {0, t.seq_kv};
  const int last = row + t.causal_offset;  // may be negative
  return {MASK == 2 ? max(0, last - t.window + 1) : 0, min(t.seq_kv, last + 1)};
}

// Tiles of keys [begin, end), which may be none.
struct TileRange {
  int begin, end;
};

// Those that any of `count` rows sees.
__device__ inline TileRange TilesSeen(int first_row, int count, const Arguments& t) {
  if (first_row >= t.seq_q) return {0, 0};
  const int begin = KeysOf(first_row, t).begin / BLOCK_N;
  const int end = KeysOf(min(t.seq_q, first_row + count) - 1, t).end;
  return {begin, max(begin, (end + BLOCK_N - 1) / BLOCK_N)};
}

// Those that all 64 rows of a consumer see whole: they need no mask.
__device__ inline TileRange WholeTilesOf(int first_row, const Arguments& t) {
  const Keys first = KeysOf(first_row, t);
  const Keys last = KeysOf(min(t.seq_q, first_row + kConsumerRows) - 1, t);
  return {(last.begin + BLOCK_N - 1) / BLOCK_N, max(0, first.end) / BLOCK_N};
}
