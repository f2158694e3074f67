// A problem: one operation at one shape. The plain value that server and clients compute with; its canonical text
// (docs/problems.md) is how people, files, tables and URLs name it.
#ifndef ATTUNE_PROTO_ATTUNE_PROBLEM_H_
#define ATTUNE_PROTO_ATTUNE_PROBLEM_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/problem.pb.h"
#include "attune/v1/trial.pb.h"

namespace attune {

// Q and O are [batch, heads_q, seq_q, head_dim], K and V [batch, heads_kv, seq_kv, head_dim], in `layout`'s order.
// O = softmax(Q K^T / sqrt(head_dim) + mask) V; a row that sees no key is 0, its log-sum-exp -inf.
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

  friend bool operator==(const Problem&, const Problem&) = default;
};

// Reads canonical text, and every other spelling that means one problem:
//   b<N>.h<N>[.kvh<N>].q<N>[.kv<N>].d<N>.<f16|bf16>[.causal|.causal-br|.window<N>][.softcap<X>][.bshd][.lse]
// kvh defaults to h, kv to q. With equal lengths both causal alignments are the same problem, written ".causal".
// InvalidArgument names the part, its value and what is allowed.
absl::StatusOr<Problem> ParseProblem(absl::string_view text);

// The canonical text: the shortest that ParseProblem reads back as `problem`.
std::string ToText(const Problem& problem);

// InvalidArgument names the field, the value and what is allowed. The result is normalised (see ParseProblem);
// unset operation, dtype, mask and layout mean attention forward, f16, none and bhsd.
absl::StatusOr<Problem> FromProto(const v1::Problem& proto);
v1::Problem ToProto(const Problem& problem);

int64_t DTypeBytes(v1::DType dtype);

// Last key column that query row `row` sees is row + CausalOffset; only for causal and window masks.
int64_t CausalOffset(const Problem& problem);

// Floating-point operations the problem needs: 4 * head_dim for every (query, visible key) pair.
double Flops(const Problem& problem);
// Fewest bytes it moves: every input read once, every output written once.
double Bytes(const Problem& problem);

// The enum values' words as DESIGN and the command line use them: "OK", "hot", "f16", "causal-br".
absl::string_view Word(v1::Verdict verdict);
absl::string_view Word(v1::Policy policy);
absl::string_view Word(v1::DType dtype);
absl::string_view Word(v1::Mask mask);

}  // namespace attune

#endif  // ATTUNE_PROTO_ATTUNE_PROBLEM_H_
