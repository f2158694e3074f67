// A problem's tensors. Some query rows and sinks are NaN or infinite, and so are their results. NaN are the keys of a
// sequence that has no queries, rows of pages that are behind a sequence's end, and pages that are nobody's; entries of
// the page table behind a sequence's last page are -1.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "common/element.cuh"
#include "guarded.h"
#include "problem.h"

namespace emulation {

class Tensors {
 public:
  // `first_page` is the least page number that is used: a high one makes places exceed 32 bits.
  Tensors(const Problem& problem, int first_page)
      : problem(problem),
        q(QueryRows() * problem.head_dim),
        k(KeyElements(first_page)),
        v(KeyElements(first_page)),
        o(q.size()),
        lse(QueryRows()),
        sinks(problem.sinks ? problem.heads_q : 0),
        q_bounds(problem.varlen ? problem.Batch() + 1 : 0),
        kv_bounds(problem.varlen && !problem.page_size ? problem.Batch() + 1 : 0),
        kv_lengths(problem.page_size ? problem.Batch() : 0),
        page_table(problem.page_size ? problem.Batch() * problem.PagesOf(problem.SeqKv()) : 0) {
    std::copy(problem.kv_lengths.begin(), problem.kv_lengths.begin() + kv_lengths.size(), kv_lengths.begin());
    for (size_t i = 0; i < q_bounds.size(); ++i) q_bounds[i] = problem.FirstQuery(static_cast<int>(i));
    for (size_t i = 0; i < kv_bounds.size(); ++i) kv_bounds[i] = problem.FirstKey(static_cast<int>(i));
    const float logits[] = {0.5f, -INFINITY, 5.0f, -3.0f, 60.0f, INFINITY, NAN};
    for (size_t head = 0; head < sinks.size(); ++head) sinks[head] = logits[head % 7];
    if (problem.page_size) DealPages(first_page);
    FillInputs();
    Clear();
  }

  // O and LSE as no kernel may leave them.
  void Clear() {
    std::fill(o.begin(), o.end(), ToElement(NAN));
    std::fill(lse.begin(), lse.end(), NAN);
  }

  // Where a key lies in K and V.
  long long KeyPlace(int sequence, int head, int key) const {
    if (!problem.page_size) return problem.KeyPlace(sequence, head, key);
    const int entry = sequence * problem.PagesOf(problem.SeqKv()) + key / problem.page_size;
    return problem.PagedKeyPlace(page_table[entry], head, key % problem.page_size);
  }

  const Problem problem;
  Guarded<Element> q, k, v, o;
  Guarded<float> lse, sinks;
  Guarded<int> q_bounds, kv_bounds, kv_lengths, page_table;

 private:
  static constexpr int kUnusedPages = 2;

  size_t QueryRows() const {
    const int rows = problem.varlen ? problem.FirstQuery(problem.Batch()) : problem.Batch() * problem.SeqQ();
    return static_cast<size_t>(rows) * problem.heads_q;
  }
  int UsedPages() const {
    int pages = 0;
    for (const int keys : problem.kv_lengths) pages += problem.PagesOf(keys);
    return pages;
  }
  size_t KeyElements(int first_page) const {
    const size_t row = static_cast<size_t>(problem.heads_kv) * problem.head_dim;
    if (problem.page_size) return (first_page + UsedPages() + kUnusedPages) * row * problem.page_size;
    return row * (problem.varlen ? problem.FirstKey(problem.Batch()) : problem.Batch() * problem.SeqKv());
  }

  // Pages in random order; -1 behind a sequence's last.
  void DealPages(int first_page) {
    std::vector<int> pages(UsedPages() + kUnusedPages);
    std::iota(pages.begin(), pages.end(), first_page);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(3));
    std::fill(page_table.begin(), page_table.end(), -1);
    const int* next = pages.data();
    for (int sequence = 0; sequence < problem.Batch(); ++sequence) {
      int* const entries = page_table.data() + sequence * problem.PagesOf(problem.SeqKv());
      for (int i = 0; i < problem.PagesOf(problem.kv_lengths[sequence]); ++i) entries[i] = *next++;
    }
    for (const int page : pages) {  // all rows NaN; those in use are written over
      const auto begin = problem.PagedKeyPlace(page, 0, 0);
      const auto end = problem.PagedKeyPlace(page + 1, 0, 0);
      std::fill(k.data() + begin, k.data() + end, ToElement(NAN));
      std::fill(v.data() + begin, v.data() + end, ToElement(NAN));
    }
  }

  void FillInputs() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0.2f, 1.0f);
    const auto fill = [&](Element* row, float times) {
      for (int i = 0; i < problem.head_dim; ++i) row[i] = ToElement(times * normal(random));
    };
    for (size_t row = 0; row * problem.head_dim < q.size(); ++row) {
      fill(q.data() + row * problem.head_dim, row % 41 == 7 ? NAN : 2.0f);
    }
    for (int sequence = 0; sequence < problem.Batch(); ++sequence) {
      const float times = problem.q_lengths[sequence] > 0 ? 1.0f : NAN;
      for (int head = 0; head < problem.heads_kv; ++head) {
        for (int key = 0; key < problem.kv_lengths[sequence]; ++key) {
          fill(k.data() + KeyPlace(sequence, head, key), times);
          fill(v.data() + KeyPlace(sequence, head, key), times);
        }
      }
    }
  }
};

}  // namespace emulation
