// A problem: one operation at one shape. The plain value that server and clients compute with; its canonical text
// (docs/problems.md) is how people, files, tables and URLs name it.
#ifndef ATTUNE_PROTO_ATTUNE_PROBLEM_H_
#define ATTUNE_PROTO_ATTUNE_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/problem.pb.h"
#include "attune/v1/trial.pb.h"

namespace attune {

// Q and O are [batch, heads_q, seq_q, head_dim], K and V [batch, heads_kv, seq_kv, head_dim], in `layout`'s order.
// O = softmax(Q K^T / sqrt(head_dim) + mask) V; a row that sees no key is 0, its log-sum-exp -inf or its head's sink.
//
// With `varlen` and `page_size` seq_q and seq_kv are the longest that a sequence may be (docs/problems.md).
struct Problem {
  int64_t batch = 1;
  int64_t heads_q = 1;
  int64_t heads_kv = 1;
  int64_t seq_q = 1;
  int64_t seq_kv = 1;
  int64_t head_dim = 64;
  v1::DType dtype = v1::DTYPE_F16;
  v1::Mask mask = v1::MASK_NONE;
  int64_t window = 0;
  double softcap = 0;
  v1::Layout layout = v1::LAYOUT_BHSD;
  bool lse = false;
  bool sinks = false;
  bool varlen = false;                         // layout is then BSHD
  int64_t page_size = 0;                       // of K and V; 0: not paged
  v1::DType kv_dtype = v1::DTYPE_UNSPECIFIED;  // of K and V, when they are 8-bit: E4M3 or E5M2

  friend bool operator==(const Problem&, const Problem&) = default;
};

// Reads canonical text, and every other spelling that means one problem:
//   b<N>.h<N>[.kvh<N>].q<N>[.kv<N>].d<N>.<f16|bf16>[.kve4m3|.kve5m2][.causal|.causal-br|.window<N>]
//   [.softcap<X>][.sinks][.varlen|.bshd][.page<N>][.lse]
// kvh defaults to h, kv to q. With equal lengths both causal alignments are the same problem, written ".causal", unless
// sequences have lengths of their own.
// InvalidArgument names the part, its value and what is allowed.
absl::StatusOr<Problem> ParseProblem(absl::string_view text);

// The canonical text: the shortest that ParseProblem reads back as `problem`.
std::string ToText(const Problem& problem);

// InvalidArgument names the field, the value and what is allowed. The result is normalised (see ParseProblem);
// unset operation, dtype, mask and layout mean attention forward, f16, none and bhsd (with varlen, bshd).
absl::StatusOr<Problem> FromProto(const v1::Problem& proto);
v1::Problem ToProto(const Problem& problem);

int64_t DTypeBytes(v1::DType dtype);
// Of the elements of K and V.
v1::DType KvDType(const Problem& problem);
// Whether K and V are 8-bit elements, which have scales beside them.
bool HasScales(const Problem& problem);

// Last key column that query row `row` sees is row + CausalOffset; only for causal and window masks. The second form is
// for a sequence of its own lengths.
int64_t CausalOffset(const Problem& problem);
int64_t CausalOffset(v1::Mask mask, int64_t q_length, int64_t kv_length);

// Tokens of each sequence, in the batch's order.
struct Lengths {
  std::vector<int64_t> q, kv;

  int64_t total_q() const;
  int64_t total_kv() const;
};
// The lengths that a problem is tuned on: all the same, or, where sequences have their own, ceil(max (B - b) / B) for
// sequence b of B, that is max, ..., max / B.
Lengths SequenceLengths(const Problem& problem);

// Floating-point operations the problem needs on SequenceLengths: 4 * head_dim for every (query, visible key) pair.
double Flops(const Problem& problem);
// Fewest bytes of tensors it moves on SequenceLengths: every input read once, every output written once. Scales are
// counted by batch and KV head.
double Bytes(const Problem& problem);

// The enum values' words as DESIGN and the command line use them: "OK", "hot", "f16", "causal-br".
absl::string_view Word(v1::Verdict verdict);
absl::string_view Word(v1::Policy policy);
// Whose word it is; UNSPECIFIED where it is none's.
v1::Policy PolicyOf(absl::string_view word);
absl::string_view Word(v1::DType dtype);
absl::string_view Word(v1::Mask mask);

}  // namespace attune

#endif  // ATTUNE_PROTO_ATTUNE_PROBLEM_H_
