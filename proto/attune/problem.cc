#include "proto/attune/problem.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/attune/quote.h"

namespace attune {
namespace {

constexpr int64_t kMaxBatch = 65536;
constexpr int64_t kMaxHeads = 65536;
constexpr int64_t kMaxSeq = int64_t{1} << 24;
constexpr int64_t kMaxHeadDim = 1024;
constexpr int64_t kMaxWindow = kMaxSeq;
// A logit divided by a smaller one, or a larger one itself, would leave the range of the kernels' fp32.
constexpr double kMinSoftcap = 1e-6;
constexpr double kMaxSoftcap = 1e6;
constexpr absl::string_view kSoftcaps = "0.000001 to 1000000";
// Tensors beyond this fit no device attune knows, and products of sizes stay far from int64's limit.
constexpr double kMaxElements = 1e12;
constexpr int64_t kMaxPageSize = 65536;
// Bounds and page tables count in 32 bits.
constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();

struct Range {
  absl::string_view field;
  int64_t value;
  int64_t max;
};

absl::Status CheckRanges(std::initializer_list<Range> ranges) {
  for (const Range& range : ranges) {
    if (range.value < 1 || range.value > range.max) {
      return absl::InvalidArgumentError(
          absl::StrCat("problem: ", range.field, " is ", range.value, "; allowed: 1 to ", range.max));
    }
  }
  return absl::OkStatus();
}

bool HasOwnLengths(const Problem& problem) { return problem.varlen || problem.page_size > 0; }

// Of a sequence: seq_kv, rounded up to whole pages.
int64_t PagedKeys(const Problem& problem) {
  const int64_t page = std::max<int64_t>(1, problem.page_size);
  return (problem.seq_kv + page - 1) / page * page;
}

absl::Status CheckDTypes(const Problem& problem) {
  if (problem.dtype != v1::DTYPE_F16 && problem.dtype != v1::DTYPE_BF16) {
    return absl::InvalidArgumentError(
        absl::StrCat("problem: dtype is ", Word(problem.dtype), "; allowed: f16, bf16; K and V alone are of kv_dtype"));
  }
  if (problem.kv_dtype != v1::DTYPE_UNSPECIFIED && !HasScales(problem)) {
    return absl::InvalidArgumentError(absl::StrCat("problem: kv_dtype is ", Word(problem.kv_dtype),
                                                   "; allowed: e4m3, e5m2 and the dtype, which is ",
                                                   Word(problem.dtype)));
  }
  return absl::OkStatus();
}

absl::Status CheckPageSize(const Problem& problem) {
  if (problem.page_size >= 0 && problem.page_size <= kMaxPageSize) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("problem: page_size is ", problem.page_size, "; allowed: 0 (not paged) and 1 to ", kMaxPageSize));
}

absl::Status CheckSequences(const Problem& problem) {
  if (problem.varlen && problem.layout != v1::LAYOUT_BSHD) {
    return absl::InvalidArgumentError(
        "problem: layout is bhsd; with varlen allowed is bshd, a token's heads one behind the other");
  }
  const int64_t tokens = problem.batch * std::max(problem.seq_q, PagedKeys(problem));
  if (HasOwnLengths(problem) && tokens > kMaxTokens) {
    return absl::InvalidArgumentError(absl::StrCat("problem: batch * max(seq_q, seq_kv in whole pages) is ", tokens,
                                                   "; allowed with varlen or page_size: 1 to ", kMaxTokens));
  }
  return absl::OkStatus();
}

// Checks every field against the others and picks one spelling for equal problems.
absl::StatusOr<Problem> Normalise(Problem problem) {
  absl::Status ranges = CheckRanges({{"batch", problem.batch, kMaxBatch},
                                     {"heads_q", problem.heads_q, kMaxHeads},
                                     {"heads_kv", problem.heads_kv, kMaxHeads},
                                     {"seq_q", problem.seq_q, kMaxSeq},
                                     {"seq_kv", problem.seq_kv, kMaxSeq},
                                     {"head_dim", problem.head_dim, kMaxHeadDim}});
  if (!ranges.ok()) return ranges;
  if (absl::Status pages = CheckPageSize(problem); !pages.ok()) return pages;
  if (problem.heads_q % problem.heads_kv != 0) {
    return absl::InvalidArgumentError(absl::StrCat("problem: heads_kv is ", problem.heads_kv,
                                                   "; allowed: divisors of heads_q, which is ", problem.heads_q));
  }
  const double elements = static_cast<double>(problem.batch) * static_cast<double>(problem.heads_q) *
                          static_cast<double>(std::max(problem.seq_q, PagedKeys(problem))) *
                          static_cast<double>(problem.head_dim);
  if (elements > kMaxElements) {
    return absl::InvalidArgumentError(absl::StrCat("problem: a tensor of batch * heads * seq * head_dim = ", elements,
                                                   " elements; allowed: ", kMaxElements));
  }
  const int64_t least_window = problem.mask == v1::MASK_WINDOW ? 1 : 0;
  if (problem.window < least_window || problem.window > least_window * kMaxWindow) {
    return absl::InvalidArgumentError(absl::StrCat("problem: window is ", problem.window, "; allowed: 1 to ",
                                                   kMaxWindow, " with mask window, and 0 otherwise"));
  }
  // Not true of NaN either.
  if (problem.softcap != 0 && !(problem.softcap >= kMinSoftcap && problem.softcap <= kMaxSoftcap)) {
    return absl::InvalidArgumentError(
        absl::StrCat("problem: softcap is ", problem.softcap, "; allowed: 0 (off) and ", kSoftcaps));
  }
  // Its text has six significant digits, and one text is one problem.
  if (problem.softcap != 0 && !absl::SimpleAtod(absl::StrCat(problem.softcap), &problem.softcap)) {
    return absl::InternalError(absl::StrCat("problem: softcap ", problem.softcap, " does not read back"));
  }
  if (absl::Status sequences = CheckSequences(problem); !sequences.ok()) return sequences;
  if (problem.kv_dtype == problem.dtype) problem.kv_dtype = v1::DTYPE_UNSPECIFIED;
  if (absl::Status dtypes = CheckDTypes(problem); !dtypes.ok()) return dtypes;
  if (problem.mask == v1::MASK_CAUSAL_BOTTOM_RIGHT && problem.seq_q == problem.seq_kv && !HasOwnLengths(problem)) {
    problem.mask = v1::MASK_CAUSAL_TOP_LEFT;
  }
  return problem;
}

// The sum of clamp(first + i, 0, most) over `rows` numbers i from 0 on.
double ClampedSum(int64_t first, int64_t rows, int64_t most) {
  const int64_t end = first + rows;
  const int64_t from = std::clamp<int64_t>(first, 0, most);  // the terms from .. to - 1 are themselves
  const int64_t to = std::clamp<int64_t>(end, from, most);
  const double rising = 0.5 * static_cast<double>(to - from) * static_cast<double>(from + to - 1);
  const int64_t capped = std::max<int64_t>(0, end - std::max(first, most));
  return rising + static_cast<double>(capped) * static_cast<double>(most);
}

// Pairs of a query row and a key it sees, of one sequence.
double VisiblePairs(const Problem& problem, int64_t q_length, int64_t kv_length) {
  if (problem.mask == v1::MASK_NONE) return static_cast<double>(q_length) * static_cast<double>(kv_length);
  const int64_t first_end = CausalOffset(problem.mask, q_length, kv_length) + 1;  // of row 0's keys
  const double before_end = ClampedSum(first_end, q_length, kv_length);
  return problem.mask == v1::MASK_WINDOW ? before_end - ClampedSum(first_end - problem.window, q_length, kv_length)
                                         : before_end;
}

// Drops digits from the front; false when there is none.
bool ConsumeDigits(absl::string_view* text) {
  const size_t end = std::min(text->find_first_not_of("0123456789"), text->size());
  text->remove_prefix(end);
  return end > 0;
}

// What stands behind a decimal point: "5" of "30.5", "9e-06" of "7.9e-06".
bool IsFraction(absl::string_view part) {
  if (!ConsumeDigits(&part)) return false;
  if (!absl::ConsumePrefix(&part, "e") && !absl::ConsumePrefix(&part, "E")) return part.empty();
  if (!absl::ConsumePrefix(&part, "-")) absl::ConsumePrefix(&part, "+");
  return ConsumeDigits(&part) && part.empty();
}

// One dot-separated part of the canonical text, and what has been read so far.
class TextReader {
 public:
  explicit TextReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<Problem> Read() {
    for (absl::string_view part : Parts()) {
      if (absl::Status status = ReadPart(part); !status.ok()) return status;
    }
    for (absl::string_view needed : {"b", "h", "q", "d", "dtype"}) {
      if (!Seen(needed)) {
        return Error(needed == "dtype" ? std::string("the dtype (f16 or bf16) is missing")
                                       : absl::StrCat("'", needed, "<number>' is missing"));
      }
    }
    if (!Seen("kvh")) problem_.heads_kv = problem_.heads_q;
    if (!Seen("kv")) problem_.seq_kv = problem_.seq_q;
    if (!Seen("layout") && problem_.varlen) problem_.layout = v1::LAYOUT_BSHD;
    absl::StatusOr<Problem> normal = Normalise(problem_);
    if (!normal.ok()) return Error(normal.status().message());
    return normal;
  }

 private:
  // Splits at dots, but keeps a softcap's decimal point with its number: "softcap30.5" is one part.
  std::vector<std::string> Parts() const {
    std::vector<std::string> parts;
    for (absl::string_view part : absl::StrSplit(text_, '.')) {
      if (IsFraction(part) && !parts.empty() && parts.back().rfind("softcap", 0) == 0) {
        absl::StrAppend(&parts.back(), ".", part);
      } else {
        parts.emplace_back(part);
      }
    }
    return parts;
  }

  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("problem ", Quoted(text_), ": ", what, "; an example is b2.h8.q512.d64.f16.causal"));
  }

  bool Seen(absl::string_view key) const { return std::find(seen_.begin(), seen_.end(), key) != seen_.end(); }

  absl::Status Once(absl::string_view key) {
    if (Seen(key)) return Error(absl::StrCat("'", key, "' is given twice"));
    seen_.push_back(key);
    return absl::OkStatus();
  }

  absl::Status ReadPart(absl::string_view part) {
    if (part == "f16" || part == "bf16") {
      problem_.dtype = part == "f16" ? v1::DTYPE_F16 : v1::DTYPE_BF16;
      return Once("dtype");
    }
    if (part == "kve4m3" || part == "kve5m2") {
      problem_.kv_dtype = part == "kve4m3" ? v1::DTYPE_E4M3 : v1::DTYPE_E5M2;
      return Once("kv_dtype");
    }
    if (part == "causal" || part == "causal-br") {
      problem_.mask = part == "causal" ? v1::MASK_CAUSAL_TOP_LEFT : v1::MASK_CAUSAL_BOTTOM_RIGHT;
      return Once("mask");
    }
    if (part == "bshd" || part == "bhsd") {
      problem_.layout = part == "bshd" ? v1::LAYOUT_BSHD : v1::LAYOUT_BHSD;
      return Once("layout");
    }
    const std::pair<absl::string_view, bool*> switches[] = {
        {"lse", &problem_.lse}, {"sinks", &problem_.sinks}, {"varlen", &problem_.varlen}};
    for (const auto& [name, on] : switches) {
      if (part != name) continue;
      *on = true;
      return Once(name);
    }
    size_t digits = part.find_first_of("-0123456789");
    const absl::string_view key = part.substr(0, digits);
    const absl::string_view number = digits == absl::string_view::npos ? absl::string_view() : part.substr(digits);
    if (key == "softcap") {
      // SimpleAtod takes white space around a number.
      const bool spaced = number.find_first_of(" \t\n\v\f\r") != absl::string_view::npos;
      if (spaced || !absl::SimpleAtod(number, &problem_.softcap) || !(problem_.softcap > 0)) {
        return Error(absl::StrCat(Quoted(part), " must be a number from ", kSoftcaps, ", as in softcap30"));
      }
      return Once("softcap");
    }
    if (key == "window") {
      problem_.mask = v1::MASK_WINDOW;
      if (absl::Status status = Once("mask"); !status.ok()) return status;
      return ReadNumber(part, number, kMaxWindow, &problem_.window);
    }
    struct Key {
      absl::string_view name;
      int64_t max;
      int64_t* value;
    };
    const Key keys[] = {{"b", kMaxBatch, &problem_.batch},          {"h", kMaxHeads, &problem_.heads_q},
                        {"kvh", kMaxHeads, &problem_.heads_kv},     {"q", kMaxSeq, &problem_.seq_q},
                        {"kv", kMaxSeq, &problem_.seq_kv},          {"d", kMaxHeadDim, &problem_.head_dim},
                        {"page", kMaxPageSize, &problem_.page_size}};
    for (const Key& known : keys) {
      if (known.name != key) continue;
      if (absl::Status status = Once(known.name); !status.ok()) return status;
      return ReadNumber(part, number, known.max, known.value);
    }
    return Error(absl::StrCat(Quoted(part),
                              " is not known; allowed: b<N> h<N> kvh<N> q<N> kv<N> d<N> f16 bf16 kve4m3 kve5m2 "
                              "causal causal-br window<N> softcap<X> sinks varlen bshd page<N> lse"));
  }

  absl::Status ReadNumber(absl::string_view part, absl::string_view number, int64_t max, int64_t* value) const {
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), *value);
    if (error != std::errc() || end != number.data() + number.size() || *value < 1 || *value > max) {
      return Error(absl::StrCat(Quoted(part), " must be an integer from 1 to ", max));
    }
    return absl::OkStatus();
  }

  absl::string_view text_;
  Problem problem_;
  std::vector<absl::string_view> seen_;
};

}  // namespace

absl::StatusOr<Problem> ParseProblem(absl::string_view text) { return TextReader(text).Read(); }

std::string ToText(const Problem& problem) {
  std::string text = absl::StrCat("b", problem.batch, ".h", problem.heads_q);
  if (problem.heads_kv != problem.heads_q) absl::StrAppend(&text, ".kvh", problem.heads_kv);
  absl::StrAppend(&text, ".q", problem.seq_q);
  if (problem.seq_kv != problem.seq_q) absl::StrAppend(&text, ".kv", problem.seq_kv);
  absl::StrAppend(&text, ".d", problem.head_dim, ".", Word(problem.dtype));
  if (HasScales(problem)) absl::StrAppend(&text, ".kv", Word(problem.kv_dtype));
  if (problem.mask == v1::MASK_WINDOW) {
    absl::StrAppend(&text, ".window", problem.window);
  } else if (problem.mask != v1::MASK_NONE) {
    absl::StrAppend(&text, ".", Word(problem.mask));
  }
  if (problem.softcap > 0) absl::StrAppend(&text, ".softcap", problem.softcap);
  if (problem.sinks) absl::StrAppend(&text, ".sinks");
  if (problem.varlen) {
    absl::StrAppend(&text, ".varlen");
  } else if (problem.layout == v1::LAYOUT_BSHD) {
    absl::StrAppend(&text, ".bshd");
  }
  if (problem.page_size > 0) absl::StrAppend(&text, ".page", problem.page_size);
  if (problem.lse) absl::StrAppend(&text, ".lse");
  return text;
}

absl::StatusOr<Problem> FromProto(const v1::Problem& proto) {
  if (proto.operation() != v1::OPERATION_KIND_UNSPECIFIED &&
      proto.operation() != v1::OPERATION_KIND_ATTENTION_FORWARD) {
    return absl::InvalidArgumentError(
        absl::StrCat("problem: operation is ", proto.operation(), "; allowed is OPERATION_KIND_ATTENTION_FORWARD"));
  }
  if (!v1::DType_IsValid(proto.dtype()) || !v1::DType_IsValid(proto.kv_dtype()) || !v1::Mask_IsValid(proto.mask()) ||
      !v1::Layout_IsValid(proto.layout())) {
    return absl::InvalidArgumentError(absl::StrCat("problem: dtype ", proto.dtype(), ", kv_dtype ", proto.kv_dtype(),
                                                   ", mask ", proto.mask(), " or layout ", proto.layout(),
                                                   " is not known to this server"));
  }
  Problem problem;
  problem.batch = proto.batch();
  problem.heads_q = proto.heads_q();
  problem.heads_kv = proto.heads_kv() == 0 ? proto.heads_q() : proto.heads_kv();
  problem.seq_q = proto.seq_q();
  problem.seq_kv = proto.seq_kv() == 0 ? proto.seq_q() : proto.seq_kv();
  problem.head_dim = proto.head_dim();
  if (proto.dtype() != v1::DTYPE_UNSPECIFIED) problem.dtype = proto.dtype();
  if (proto.mask() != v1::MASK_UNSPECIFIED) problem.mask = proto.mask();
  if (proto.varlen()) problem.layout = v1::LAYOUT_BSHD;
  if (proto.layout() != v1::LAYOUT_UNSPECIFIED) problem.layout = proto.layout();
  problem.window = proto.window();
  problem.softcap = proto.softcap();
  problem.lse = proto.lse();
  problem.sinks = proto.sinks();
  problem.varlen = proto.varlen();
  problem.page_size = proto.page_size();
  problem.kv_dtype = proto.kv_dtype();
  return Normalise(problem);
}

v1::Problem ToProto(const Problem& problem) {
  v1::Problem proto;
  proto.set_operation(v1::OPERATION_KIND_ATTENTION_FORWARD);
  proto.set_batch(problem.batch);
  proto.set_heads_q(problem.heads_q);
  proto.set_heads_kv(problem.heads_kv);
  proto.set_seq_q(problem.seq_q);
  proto.set_seq_kv(problem.seq_kv);
  proto.set_head_dim(problem.head_dim);
  proto.set_dtype(problem.dtype);
  proto.set_mask(problem.mask);
  proto.set_window(problem.window);
  proto.set_softcap(problem.softcap);
  proto.set_layout(problem.layout);
  proto.set_lse(problem.lse);
  proto.set_sinks(problem.sinks);
  proto.set_varlen(problem.varlen);
  proto.set_page_size(problem.page_size);
  proto.set_kv_dtype(problem.kv_dtype);
  return proto;
}

int64_t DTypeBytes(v1::DType dtype) { return dtype == v1::DTYPE_E4M3 || dtype == v1::DTYPE_E5M2 ? 1 : 2; }

v1::DType KvDType(const Problem& problem) {
  return problem.kv_dtype == v1::DTYPE_UNSPECIFIED ? problem.dtype : problem.kv_dtype;
}

bool HasScales(const Problem& problem) { return DTypeBytes(KvDType(problem)) == 1; }

int64_t CausalOffset(v1::Mask mask, int64_t q_length, int64_t kv_length) {
  return mask == v1::MASK_CAUSAL_TOP_LEFT ? 0 : kv_length - q_length;
}

int64_t CausalOffset(const Problem& problem) { return CausalOffset(problem.mask, problem.seq_q, problem.seq_kv); }

int64_t Lengths::total_q() const { return std::accumulate(q.begin(), q.end(), int64_t{0}); }
int64_t Lengths::total_kv() const { return std::accumulate(kv.begin(), kv.end(), int64_t{0}); }

Lengths SequenceLengths(const Problem& problem) {
  const auto falling = [batch = problem.batch](int64_t longest) {
    std::vector<int64_t> lengths;
    for (int64_t left = batch; left > 0; --left) lengths.push_back((longest * left + batch - 1) / batch);
    return lengths;
  };
  const auto equal = [batch = problem.batch](int64_t length) { return std::vector<int64_t>(batch, length); };
  return {problem.varlen ? falling(problem.seq_q) : equal(problem.seq_q),
          HasOwnLengths(problem) ? falling(problem.seq_kv) : equal(problem.seq_kv)};
}

double Flops(const Problem& problem) {
  const Lengths lengths = SequenceLengths(problem);
  double pairs = 0;
  for (int64_t b = 0; b < problem.batch; ++b) pairs += VisiblePairs(problem, lengths.q[b], lengths.kv[b]);
  return 4.0 * static_cast<double>(problem.head_dim) * pairs * static_cast<double>(problem.heads_q);
}

double Bytes(const Problem& problem) {
  const Lengths lengths = SequenceLengths(problem);
  const double rows_q = static_cast<double>(problem.heads_q) * static_cast<double>(lengths.total_q());
  const double rows_kv = static_cast<double>(problem.heads_kv) * static_cast<double>(lengths.total_kv());
  const double row_q = static_cast<double>(problem.head_dim * DTypeBytes(problem.dtype));
  const double row_kv = static_cast<double>(problem.head_dim * DTypeBytes(KvDType(problem)));
  const double scales = HasScales(problem) ? 2.0 * 4.0 * static_cast<double>(problem.batch * problem.heads_kv) : 0.0;
  return 2 * rows_q * row_q + 2 * rows_kv * row_kv + scales + (problem.lse ? 4 * rows_q : 0);
}

absl::string_view Word(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_OK:
      return "OK";
    case v1::VERDICT_INFEASIBLE:
      return "INFEASIBLE";
    case v1::VERDICT_COMPILE_ERROR:
      return "COMPILE_ERROR";
    case v1::VERDICT_WRONG_RESULT:
      return "WRONG_RESULT";
    case v1::VERDICT_OUT_OF_BOUNDS:
      return "OUT_OF_BOUNDS";
    case v1::VERDICT_TIMEOUT:
      return "TIMEOUT";
    case v1::VERDICT_CRASHED:
      return "CRASHED";
    case v1::VERDICT_UNSTABLE:
      return "UNSTABLE";
    case v1::VERDICT_SLOW:
      return "SLOW";
    case v1::VERDICT_LOST:
      return "LOST";
    default:
      return "UNKNOWN";
  }
}

absl::string_view Word(v1::Policy policy) {
  switch (policy) {
    case v1::POLICY_HOT:
      return "hot";
    case v1::POLICY_COLD:
      return "cold";
    case v1::POLICY_L2_WARM:
      return "l2-warm";
    default:
      return "unknown";
  }
}

v1::Policy PolicyOf(absl::string_view word) {
  for (const v1::Policy policy : {v1::POLICY_HOT, v1::POLICY_COLD, v1::POLICY_L2_WARM}) {
    if (word == Word(policy)) return policy;
  }
  return v1::POLICY_UNSPECIFIED;
}

absl::string_view Word(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_BF16:
      return "bf16";
    case v1::DTYPE_E4M3:
      return "e4m3";
    case v1::DTYPE_E5M2:
      return "e5m2";
    default:
      return "f16";
  }
}

absl::string_view Word(v1::Mask mask) {
  switch (mask) {
    case v1::MASK_CAUSAL_TOP_LEFT:
      return "causal";
    case v1::MASK_CAUSAL_BOTTOM_RIGHT:
      return "causal-br";
    case v1::MASK_WINDOW:
      return "window";
    default:
      return "none";
  }
}

}  // namespace attune
