// Being right: inputs, references, tolerances and guards (DESIGN.md, section 6). Knows device::Device, and no GPU API.
#ifndef ATTUNE_SERVER_VERIFY_VERIFY_H_
#define ATTUNE_SERVER_VERIFY_VERIFY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "attune/worker/v1/worker.pb.h"
#include "proto/attune/problem.h"
#include "server/device/device.h"

namespace attune::verify {

// How Q, K and V are drawn. Every problem is checked on all of them.
enum class Distribution {
  kNormal,       // N(0, 1)
  kOffsetMean,   // N(0, 1) + 1 in V, K: zero-mean inputs hide errors of normalisation
  kLargeLogits,  // |logit| up to about 40: exp overflows without the running maximum
  kDominantKey,  // one key a row takes nearly all the weight; in every other row its exp overflows fp32
  kCounting,     // all keys weigh the same and are counted (counting_inputs.h)
                 // Sinks are N(0, 1); with kLargeLogits the first is 100 and the last -100, far beyond every logit.
};
std::vector<Distribution> Distributions();
absl::string_view Name(Distribution distribution);

// What a problem does not have is empty.
struct Tensors {
  std::vector<uint16_t> q, k = {}, v = {};  // in the problem's dtype and layout
  std::vector<float> sinks = {};
  std::vector<int32_t> q_bounds = {}, kv_bounds = {}, kv_lengths = {}, page_table = {};
  std::vector<uint8_t> k_codes = {}, v_codes = {};  // in place of k and v, when those are of 8 bits
  std::vector<float> k_scales = {}, v_scales = {};  // then, [batch, heads_kv]
};
// Lengths differ from distribution to distribution, their totals do not. What no kernel may read is NaN: rows of a page
// behind its sequence's end, and a page that belongs to nobody. Elements of 8 bits: cache_inputs.h.
Tensors MakeInputs(const Problem& problem, Distribution distribution, uint64_t seed);
// The same, but about an eighth of the rows of Q, K and V, at least one of each, are of another seed.
Tensors MakeChangedInputs(const Problem& problem, Distribution distribution, uint64_t seed);

// fp64 on the host, for small problems: checks the device's reference kernel itself. O and LSE as fp32, both as they
// lie on the device.
struct HostResult {
  std::vector<float> o, lse;
};
HostResult HostReference(const Problem& problem, const Tensors& inputs);

struct Tolerance {
  double absolute = 1e-3;
  double relative = 1e-3;
};
Tolerance ToleranceFor(v1::DType dtype);
// What the tolerance of an output is multiplied by: the chance of an error falls exponentially with its size, so the
// largest of N grows with ln N (docs/measuring.md). 1 up to 2^17 elements.
double TailFactor(int64_t elements);

struct Comparison {
  bool ok = false;
  double max_abs_error = 0;
  std::string detail;  // first element that is wrong, with its index, value and reference
};
// |out - ref| <= (absolute + relative * |ref|) * TailFactor everywhere, no NaN or Inf, and the largest error <= 2x the
// plain computation's (`plain_max_abs_error`, with one rounding step of the dtype as its least).
Comparison CompareOutput(const Problem& problem, absl::Span<const uint16_t> out, absl::Span<const float> reference,
                         double plain_max_abs_error);
// What CompareOutput counts, for other ways to count it: elements beyond absolute + relative * |ref|, and the largest
// error and reference. Each operation is rounded to fp32.
struct OutputTally {
  int64_t wrong = 0;
  float max_error = 0;
  float max_reference = 0;
};
OutputTally TallyOf(absl::Span<const float> out, absl::Span<const float> reference, float absolute, float relative);
// CompareOutput's bounds of an element, and its bound of the largest error.
Tolerance OutputTolerance(const Problem& problem, int64_t elements);
double ErrorLimit(const Problem& problem, float max_reference, double plain_max_abs_error);
Comparison CompareLse(absl::Span<const float> lse, absl::Span<const float> reference);

// What is wrong with a candidate; VERDICT_OK when nothing is.
struct Finding {
  v1::Verdict verdict = v1::VERDICT_OK;
  std::string detail;

  bool ok() const { return verdict == v1::VERDICT_OK; }
};

class Inspection;

// Inputs of more than so many bytes a problem are large: reading all of them takes longer than the rest of a trial.
inline constexpr double kLargeBytes = 64 << 20;

// A candidate bound to the inputs that timing rotates through. Keeps its module and scratch; must not outlive the
// PreparedProblem that made it.
class TimedCandidate {
 public:
  virtual ~TimedCandidate() = default;
  virtual absl::Span<device::Runnable* const> runnables() const = 0;
  // Empty, or what has been written outside a scratch buffer, or which one must be zero between runs and is not. Looked
  // at where it lies first, when there is an `inspection`.
  virtual absl::StatusOr<std::string> ScratchDamage(Inspection* inspection) const = 0;
  // How long the checked run took, its launch included, by the device's events; zero where there is none.
  virtual absl::Duration checked_run() const = 0;
};

// A problem made ready on a device: inputs of every distribution between red zones, reference results, rotating
// copies for HOT timing. Keeps device memory until destroyed.
class PreparedProblem {
 public:
  // Internal when the device's reference kernels are not finite or disagree with the fp64 reference on the host;
  // InvalidArgument when the request lacks one; otherwise as the device says. `device` outlives the result.
  // `inspector`: the device's, when CheckInspector has found that it agrees with the host (inspection.h). Null: all is
  // looked at on the host. `large_bytes`: prepared/shared_inputs.h says what is otherwise with large inputs.
  static absl::StatusOr<std::unique_ptr<PreparedProblem>> Create(device::Device& device, const Problem& problem,
                                                                 const worker::v1::PrepareRequest& request,
                                                                 device::Inspector* inspector,
                                                                 double large_bytes = kLargeBytes);
  // The same problem with all device memory allocated and all code loaded anew: the same inputs, whose reference
  // results are kept on the host and not computed again. Frees what `old` has on the device before it allocates
  // anything; no TimedCandidate of `old` may be left, and `old` is gone even when this fails. Internal when the
  // inspector does not find on the device what was put there; otherwise as the device says.
  static absl::StatusOr<std::unique_ptr<PreparedProblem>> Reload(std::unique_ptr<PreparedProblem> old);
  virtual ~PreparedProblem() = default;

  // Where outputs, red zones and inputs are looked at. What is not right on the device is looked at on the host.
  enum class Look { kOnDevice, kOnHost };

  // One run of a candidate on distribution kNormal, looked at as Check looks at each of its. When that is right, `time`
  // is called with the candidate as it ran, and inputs and references are looked at after it. Enough to find most of
  // what is wrong, and to say how slow what is right is; never enough to serve it. Answers as Check does.
  virtual absl::StatusOr<worker::v1::TrialResponse> QuickCheck(
      const worker::v1::Candidate& candidate, absl::FunctionRef<absl::Status(const TimedCandidate&)> time) = 0;

  // Runs a candidate on every distribution: outputs poisoned before each run, red zones and inputs unchanged after it
  // (large ones in turn: prepared/shared_inputs.h), NaN-filled zones so that what is read outside shows,
  // twice with equal bits. Verdict OK, INFEASIBLE, WRONG_RESULT, OUT_OF_BOUNDS or UNSTABLE in `verdict`, `detail` and
  // `accuracy`; an error status when the device failed.
  virtual absl::StatusOr<worker::v1::TrialResponse> Check(const worker::v1::Candidate& candidate, Look look) = 0;

  // Runs a candidate that Check found right at least 64 times more over the distributions, and up to 1,000 times while
  // less than `most` has passed: what is wrong once in a hundred runs. WRONG_RESULT, OUT_OF_BOUNDS or UNSTABLE, with
  // the run's number; an error status as Check's.
  virtual absl::StatusOr<Finding> CheckManyRuns(const worker::v1::Candidate& candidate, absl::Duration most) = 0;

  // The candidate bound to distribution kNormal, for timing: as many runnables as input sets it takes to exceed twice
  // the L2, at most 8 and at most a quarter of the device's memory. FailedPrecondition or ResourceExhausted when the
  // candidate cannot run here.
  virtual absl::StatusOr<std::unique_ptr<TimedCandidate>> ForTiming(const worker::v1::Candidate& candidate) = 0;

  // After runnables of `timed` have been timed, some of its first `sets`: is what was timed also what was checked?
  // Changes rows of one set's inputs in place and leaves its outputs (of large inputs in one trial of four, in
  // play-offs always), poisons the other sets' outputs with right results in wrong places, which no kernel can tell
  // from left-over ones, has `run_again` run each of these runnables at least once in the way that was timed, and looks
  // at their outputs, at red zones, scratch and all inputs. WRONG_RESULT or OUT_OF_BOUNDS otherwise, and damaged inputs
  // are repaired. In a play-off (its first cycle) the host looks. An error status when the device failed.
  enum class Occasion { kTrial, kPlayOff };
  virtual absl::StatusOr<Finding> CheckTimed(const TimedCandidate& timed, size_t sets,
                                             absl::FunctionRef<absl::Status()> run_again, Occasion occasion) = 0;

  // Empty, or which input has been changed or written around by the candidates timed together; repaired.
  virtual absl::StatusOr<std::string> RepairInputs() = 0;
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_VERIFY_H_
