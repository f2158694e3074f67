// Attention forward over sequences: sizes, options, and where each row lies.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace emulation {

enum class Mask { kNone, kTopLeft, kBottomRight, kWindow };

// How tensors lie in memory: densely in one of two orders, or each in an order of its own with gaps everywhere.
enum class Layout { kBhsd, kBshd, kMixed };
enum class Tensor { kQ, kK, kV, kO };

// From one sequence, or page, one head and one row to the next, in elements.
struct Spacing {
  long long batch, head, row;
  long long Place(long long in_batch, long long in_head, long long in_row) const {
    return in_batch * batch + in_head * head + in_row * row;
  }
};

// `rows` of each of `heads`, of one sequence or page, or of all sequences that lie one behind the other.
inline Spacing SpacingOf(Layout layout, Tensor tensor, long long heads, long long rows, long long dim) {
  const auto rows_first = [&](long long row_gap, long long head_gap, long long batch_gap) {
    const long long row = dim + row_gap;
    const long long head = rows * row + head_gap;
    return Spacing{heads * head + batch_gap, head, row};
  };
  const auto heads_first = [&](long long head_gap, long long row_gap, long long batch_gap) {
    const long long head = dim + head_gap;
    const long long row = heads * head + row_gap;
    return Spacing{rows * row + batch_gap, head, row};
  };
  if (layout == Layout::kBhsd) return rows_first(0, 0, 0);
  if (layout == Layout::kBshd) return heads_first(0, 0, 0);
  switch (tensor) {
    case Tensor::kQ:
      return heads_first(0, 3 * dim, 8);
    case Tensor::kK:  // 16 of 8 bits are as many bytes as a copy
      return rows_first(16, 48, 32);
    case Tensor::kV:
      return heads_first(16, dim, 0);
    default:
      return rows_first(24, 8, 32);
  }
}

struct Problem {
  int heads_q, heads_kv, head_dim;
  std::vector<int> q_lengths, kv_lengths;  // of each sequence
  Mask mask = Mask::kNone;
  int window = 0;
  float softcap = 0;  // 0: none
  bool sinks = false, varlen = false;
  Layout layout = Layout::kBhsd;
  int page_size = 0;  // 0: no pages

  int Batch() const { return static_cast<int>(q_lengths.size()); }
  int SeqQ() const { return *std::max_element(q_lengths.begin(), q_lengths.end()); }
  int SeqKv() const { return *std::max_element(kv_lengths.begin(), kv_lengths.end()); }
  int Group() const { return heads_q / heads_kv; }
  int PagesOf(int keys) const { return (keys + page_size - 1) / page_size; }

  // Row i sees keys <= i + this.
  int CausalOffset(int sequence) const {
    return mask == Mask::kTopLeft ? 0 : kv_lengths[sequence] - q_lengths[sequence];
  }
  bool Sees(int sequence, int row, int key) const {
    const int last = row + CausalOffset(sequence);
    return mask == Mask::kNone || (key <= last && (mask != Mask::kWindow || key > last - window));
  }

  // Places in elements. Rows of Q, O and LSE are numbered over all sequences.
  int FirstQuery(int sequence) const { return std::accumulate(q_lengths.begin(), q_lengths.begin() + sequence, 0); }
  int FirstKey(int sequence) const { return std::accumulate(kv_lengths.begin(), kv_lengths.begin() + sequence, 0); }
  // Of Q or O; of K or V, where a page has its rows as bshd has a sequence's, whatever the layout.
  Spacing QuerySpacing(Tensor tensor) const {
    return SpacingOf(layout, tensor, heads_q, varlen ? FirstQuery(Batch()) : SeqQ(), head_dim);
  }
  Spacing KeySpacing(Tensor tensor) const {
    const Layout found = page_size && layout == Layout::kBhsd ? Layout::kBshd : layout;
    return SpacingOf(found, tensor, heads_kv, page_size ? page_size : varlen ? FirstKey(Batch()) : SeqKv(), head_dim);
  }
  long long QueryPlace(Tensor tensor, int sequence, int head, int row) const {
    return QuerySpacing(tensor).Place(varlen ? 0 : sequence, head, row + (varlen ? FirstQuery(sequence) : 0));
  }
  // Without pages.
  long long KeyPlace(Tensor tensor, int sequence, int head, int key) const {
    return KeySpacing(tensor).Place(varlen ? 0 : sequence, head, key + (varlen ? FirstKey(sequence) : 0));
  }
  long long PagedKeyPlace(Tensor tensor, int page, int head, int row) const {
    return KeySpacing(tensor).Place(page, head, row);
  }
  long long LogSumPlace(int sequence, int head, int row) const {
    if (varlen) return static_cast<long long>(head) * FirstQuery(Batch()) + FirstQuery(sequence) + row;
    return (static_cast<long long>(sequence) * heads_q + head) * SeqQ() + row;
  }

  std::string Text() const {
    std::string text = "heads " + std::to_string(heads_q) + "/" + std::to_string(heads_kv) + " mask " +
                       std::to_string(static_cast<int>(mask)) + " lengths";
    for (int i = 0; i < Batch(); ++i) {
      text += " " + std::to_string(q_lengths[i]) + "x" + std::to_string(kv_lengths[i]);
    }
    return text;
  }
};

}  // namespace emulation
