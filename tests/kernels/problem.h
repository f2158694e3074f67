// Attention forward over sequences: sizes, options, and where each row lies.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace emulation {

enum class Mask { kNone, kTopLeft, kBottomRight, kWindow };

struct Problem {
  int heads_q, heads_kv, head_dim;
  std::vector<int> q_lengths, kv_lengths;  // of each sequence
  Mask mask = Mask::kNone;
  int window = 0;
  float softcap = 0;  // 0: none
  bool sinks = false, bshd = false, varlen = false;
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
  long long QueryPlace(int sequence, int head, int row) const {
    return Place(sequence, head, row, heads_q, SeqQ(), varlen ? FirstQuery(sequence) : -1);
  }
  long long KeyPlace(int sequence, int head, int key) const {
    return Place(sequence, head, key, heads_kv, SeqKv(), varlen ? FirstKey(sequence) : -1);
  }
  long long PagedKeyPlace(int page, int head, int row) const {
    return ((static_cast<long long>(page) * page_size + row) * heads_kv + head) * head_dim;
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

 private:
  // `first`: the sequence's first row where they are one behind the other, or -1.
  long long Place(long long sequence, int head, long long row, int heads, int rows, int first) const {
    if (first >= 0) return ((first + row) * heads + head) * head_dim;
    if (bshd) return ((sequence * rows + row) * heads + head) * head_dim;
    return ((sequence * heads + head) * rows + row) * head_dim;
  }
};

}  // namespace emulation
