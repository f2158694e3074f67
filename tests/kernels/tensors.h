// A problem's tensors, what no row has of them NaN. Some query rows and sinks are NaN or infinite, and so are their
// results. NaN are the keys of a sequence that has no queries, rows of pages that are behind a sequence's end, and
// pages that are nobody's; entries of the page table behind a sequence's last page are -1.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "common/element.cuh"
#include "guarded.h"
#include "kv_element.h"
#include "problem.h"

namespace emulation {

class Tensors {
 public:
  // `first_page` is the least page number that is used: a high one makes places exceed 32 bits.
  Tensors(const Problem& problem, int first_page)
      : problem(problem),
        q(QueryElements(Tensor::kQ)),
        k(KeyElements(Tensor::kK, first_page)),
        v(KeyElements(Tensor::kV, first_page)),
        o(QueryElements(Tensor::kO)),
        lse(QueryRows()),
        sinks(problem.sinks ? problem.heads_q : 0),
        k_scale(KV_DTYPE ? ScalePlace(problem.Batch() - 1, problem.heads_kv - 1) + 1 : 0),
        v_scale(k_scale.size()),
        q_bounds(problem.varlen ? problem.Batch() + 1 : 0),
        kv_bounds(problem.varlen && !problem.page_size ? problem.Batch() + 1 : 0),
        kv_lengths(problem.page_size ? problem.Batch() : 0),
        page_table(problem.page_size ? problem.Batch() * problem.PagesOf(problem.SeqKv()) : 0) {
    std::copy(problem.kv_lengths.begin(), problem.kv_lengths.begin() + kv_lengths.size(), kv_lengths.begin());
    for (size_t i = 0; i < q_bounds.size(); ++i) q_bounds[i] = problem.FirstQuery(static_cast<int>(i));
    for (size_t i = 0; i < kv_bounds.size(); ++i) kv_bounds[i] = problem.FirstKey(static_cast<int>(i));
    const float logits[] = {0.5f, -INFINITY, 5.0f, -3.0f, 60.0f, INFINITY, NAN};
    for (size_t head = 0; head < sinks.size(); ++head) sinks[head] = logits[head % 7];
    if (problem.page_size) {
      DealPages(first_page);
    } else {
      std::fill(k.begin(), k.end(), ToKvElement(NAN));
      std::fill(v.begin(), v.end(), ToKvElement(NAN));
    }
    std::fill(q.begin(), q.end(), ToElement(NAN));
    if (KV_DTYPE) FillScales();
    FillInputs();
    Clear();
  }

  // O and LSE as no kernel may leave them.
  void Clear() {
    std::fill(o.begin(), o.end(), ToElement(NAN));
    std::fill(lse.begin(), lse.end(), NAN);
  }

  // Where a key lies in K or V.
  long long KeyPlace(Tensor tensor, int sequence, int head, int key) const {
    if (!problem.page_size) return problem.KeyPlace(tensor, sequence, head, key);
    const int entry = sequence * problem.PagesOf(problem.SeqKv()) + key / problem.page_size;
    return problem.PagedKeyPlace(tensor, page_table[entry], head, key % problem.page_size);
  }

  // In K's and V's scales.
  long long ScalePlace(int sequence, int head) const { return ScaleSpacing().Place(sequence, head, 0); }
  Spacing ScaleSpacing() const { return {2 * problem.heads_kv + 1, 2, 0}; }

  // What the elements of a KV head of a sequence are times.
  float KeyScale(int sequence, int head) const { return KV_DTYPE ? k_scale[ScalePlace(sequence, head)] : 1.0f; }
  float ValueScale(int sequence, int head) const { return KV_DTYPE ? v_scale[ScalePlace(sequence, head)] : 1.0f; }

  const Problem problem;
  Guarded<Element> q;
  Guarded<KvElement> k, v;
  Guarded<Element> o;
  Guarded<float> lse, sinks, k_scale, v_scale;
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
  // Up to the end of the last row.
  size_t QueryElements(Tensor tensor) const {
    const int rows = problem.varlen ? problem.FirstQuery(problem.Batch()) : problem.SeqQ();
    return Elements(problem.QuerySpacing(tensor), problem.varlen ? 1 : problem.Batch(), problem.heads_q, rows);
  }
  size_t KeyElements(Tensor tensor, int first_page) const {
    const Spacing spacing = problem.KeySpacing(tensor);
    if (problem.page_size) {
      return Elements(spacing, first_page + UsedPages() + kUnusedPages, problem.heads_kv, problem.page_size);
    }
    const int rows = problem.varlen ? problem.FirstKey(problem.Batch()) : problem.SeqKv();
    return Elements(spacing, problem.varlen ? 1 : problem.Batch(), problem.heads_kv, rows);
  }
  size_t Elements(const Spacing& spacing, int batch, int heads, int rows) const {
    return rows == 0 ? 0 : spacing.Place(batch - 1, heads - 1, rows - 1) + problem.head_dim;
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
    for (const int page : pages) {  // all rows NaN, and what is between them; those in use are written over
      const auto clear = [&](Tensor tensor, Guarded<KvElement>& array) {
        const size_t begin = problem.PagedKeyPlace(tensor, page, 0, 0);
        const size_t end = problem.PagedKeyPlace(tensor, page + 1, 0, 0);
        std::fill(array.data() + begin, array.data() + std::min(end, array.size()), ToKvElement(NAN));
      };
      clear(Tensor::kK, k);
      clear(Tensor::kV, v);
    }
  }

  void FillScales() {
    std::fill(k_scale.begin(), k_scale.end(), NAN);
    std::fill(v_scale.begin(), v_scale.end(), NAN);
    int number = 0;
    for (int sequence = 0; sequence < problem.Batch(); ++sequence) {
      for (int head = 0; head < problem.heads_kv; ++head, ++number) {
        k_scale[ScalePlace(sequence, head)] = std::ldexp(number % 5 == 2 ? -0.9f : 0.9f, number % 3 - 1);
        v_scale[ScalePlace(sequence, head)] = std::ldexp(number % 5 == 3 ? -1.1f : 1.1f, number % 4 - 2);
      }
    }
  }

  // With 8-bit K and V and Q in bf16 some rows are far from what fp16 can hold.
  float TimesQuery(size_t number) const {
    if (number % 41 == 7) return NAN;
    if (!KV_DTYPE || !IS_BF16) return 2.0f;
    return number % 41 == 9 ? 1e5f : number % 41 == 12 ? 1e-20f : 2.0f;
  }

  void FillInputs() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0.2f, 1.0f);
    const auto fill = [&](Element* row, float times) {
      for (int i = 0; i < problem.head_dim; ++i) row[i] = ToElement(times * normal(random));
    };
    const auto fill_key = [&](KvElement* row, float times) {
      for (int i = 0; i < problem.head_dim; ++i) row[i] = ToKvElement(times * normal(random));
    };
    size_t number = 0;
    for (int sequence = 0; sequence < problem.Batch(); ++sequence) {
      for (int head = 0; head < problem.heads_q; ++head) {
        for (int row = 0; row < problem.q_lengths[sequence]; ++row) {
          fill(q.data() + problem.QueryPlace(Tensor::kQ, sequence, head, row), TimesQuery(number++));
        }
      }
    }
    for (int sequence = 0; sequence < problem.Batch(); ++sequence) {
      const float times = problem.q_lengths[sequence] > 0 ? 1.0f : NAN;
      for (int head = 0; head < problem.heads_kv; ++head) {
        for (int key = 0; key < problem.kv_lengths[sequence]; ++key) {
          fill_key(k.data() + KeyPlace(Tensor::kK, sequence, head, key), times);
          fill_key(v.data() + KeyPlace(Tensor::kV, sequence, head, key), times);
        }
      }
    }
  }
};

}  // namespace emulation
