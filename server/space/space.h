// The variants of a family that make sense for a problem on a device, and what each needs to be compiled and run.
//
// Free of any GPU API: a device is its limits (v1::Device).
#ifndef ATTUNE_SERVER_SPACE_SPACE_H_
#define ATTUNE_SERVER_SPACE_SPACE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/launch.pb.h"
#include "attune/v1/trial.pb.h"
#include "proto/attune/problem.h"
#include "server/space/family.h"
#include "server/space/selection.h"

namespace attune::space {

// A value for every parameter of a family, in the manifest's order.
struct Variant {
  std::shared_ptr<const Family> family;
  std::vector<int64_t> values;

  // "attention_simt:BLOCK_M=64,BLOCK_N=32"
  std::string ToText() const;
  v1::Variant ToProto() const;
};

// NotFound when no family has the name; InvalidArgument names the parameter that is missing, unknown or out of range.
absl::StatusOr<Variant> ParseVariant(absl::string_view text,
                                     const std::vector<std::shared_ptr<const Family>>& families);

struct Removed {
  std::string constraint;
  std::string reason;
  int64_t count = 0;  // points of the product that this constraint was the first to reject
  bool advice = false;
};

// How much of a space is looked at before the answer is that it is too large. Listing and compiling so many variants
// would take days; what is known of each while a job runs (some 1.5 KB) stays below 100 MB.
inline constexpr int64_t kMostVariants = 50'000;
// Values given to a parameter during one walk: a second or less.
inline constexpr int64_t kMostSteps = 2'000'000;

// Asked every few thousand steps: true ends the work with Cancelled. Null: never.
using Stopped = std::function<bool()>;

struct Enumeration {
  std::vector<Variant> variants;  // in lexicographic order of the manifest's values; empty unless `listed`
  int64_t product = 0;            // points before any constraint
  int64_t count = 0;              // variants, at least
  std::vector<Removed> removed;   // no count is 0; when `counted`, product = count + sum of these
  bool counted = true;            // false: kMostSteps were not enough, `count` and `removed` are lower bounds
  bool listed = true;             // false: there are more than kMostVariants, or they could not all be counted
};

// InvalidArgument names the first of `where` that is no expression over the family's names, and says why.
absl::Status Understands(const Family& family, const std::vector<std::string>& where);

// Whether the family applies at all: FailedPrecondition carries the first problem limit that does not hold.
absl::Status Applies(const Family& family, const Problem& problem, const v1::Device& device);

// Depth first over the parameters; a constraint is tried as soon as every parameter it mentions has a value, and
// a rejection there counts the whole subtree. Exact: what remains is what filtering the full product would leave.
// To the manifest's own rules come the device's limits on any launch (threads and dynamic shared memory a block, grid),
// so that no variant is offered to a device that could not launch it. What is selected is a rule, too; the family must
// understand it.
//
// A space that is too large to list is counted only, and no memory is held for it; a subtree that no rule can prune
// any more is then counted at once.
absl::StatusOr<Enumeration> Enumerate(const std::shared_ptr<const Family>& family, const Problem& problem,
                                      const v1::Device& device, const Stopped& stopped = nullptr,
                                      const Selection& selection = {});

// Up to `count` different variants drawn at random, without listing the others: each parameter in turn takes one of the
// values that its rules leave, and what ends where none is left is drawn again. Not uniform where rules prune unevenly.
// The same seed draws the same ones. Fewer, or none, where kMostSteps do not find more.
absl::StatusOr<std::vector<Variant>> Sample(const std::shared_ptr<const Family>& family, const Problem& problem,
                                            const v1::Device& device, int64_t count, uint64_t seed,
                                            const Stopped& stopped = nullptr, const Selection& selection = {});

// Whether one variant satisfies limits and the constraints that forbid, and those that advise where they are heeded;
// FailedPrecondition carries the reason.
absl::Status Feasible(const Variant& variant, const Problem& problem, const v1::Device& device,
                      Advice advice = Advice::kIgnored);

// Whether all of `where` is true of a variant, whose family understands it.
absl::StatusOr<bool> IsTrueOf(const Variant& variant, const std::vector<std::string>& where, const Problem& problem,
                              const v1::Device& device);

// The variant of the same code, launched in another way, that is advised for the problem and has its launch-time
// parameters the fewest steps away in their manifest's lists; itself where it is advised. NotFound when there is none.
absl::StatusOr<Variant> Refit(const Variant& variant, const Problem& problem, const v1::Device& device);

// What a model may know of a variant before anything is tried: its parameters and what its manifest's lets come to for
// a problem on a device, in the order of FeatureNames.
std::vector<std::string> FeatureNames(const Family& family);
absl::StatusOr<std::vector<double>> Features(const Variant& variant, const Problem& problem, const v1::Device& device);

// What must be compiled. Equal `key`s compile to the same code: it covers sources, options and target, and leaves
// launch-time parameters out.
struct CompileSpec {
  std::string key;                   // SHA-256, hexadecimal
  std::vector<std::string> options;  // "-DBLOCK_M=64"
  std::vector<std::string> entries;  // launches' entry names, main first
};
absl::StatusOr<CompileSpec> SpecFor(const Variant& variant, const Problem& problem, const v1::Device& device);

// How to run it: grids, arguments and scratch, every expression evaluated for this problem. Scratch of 0 bytes keeps
// its place in the recipe, its argument is a null pointer. InvalidArgument names the field whose expression does not
// come to an integer in range; FailedPrecondition when the variant is not feasible.
absl::StatusOr<v1::LaunchRecipe> RecipeFor(const Variant& variant, const Problem& problem, const v1::Device& device);

// Resident CTAs an SM, waves and occupancy of the recipe's main launch, from the compiler's report and the device's
// limits (CUDA's occupancy rules: warps, blocks, registers by 256-register warp allocations, shared memory).
// OpenCL devices: one CTA a compute unit.
v1::Geometry GeometryOf(const v1::LaunchRecipe& recipe, const v1::Resources& resources, const v1::Device& device);

// The advised variant, or where there is none the feasible one, whose compile-time parameters are the fewest steps from
// their manifest's guesses. Among equals, parallelism first: one with >= 4 CTAs an SM, or the most there are; then the
// fewest steps from the launch-time guesses. In a large space it is the best of those nearest to the guesses. NotFound
// when nothing is feasible, or nothing was found near enough. With `accepted`, those alone that it is true of.
using Accepted = std::function<bool(const Variant&)>;
absl::StatusOr<Variant> Guess(const std::shared_ptr<const Family>& family, const Problem& problem,
                              const v1::Device& device, const Accepted& accepted = nullptr);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_SPACE_H_
