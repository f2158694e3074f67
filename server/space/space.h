// The variants of a family that make sense for a problem on a device, and what each needs to be compiled and run.
//
// Free of any GPU API: a device is its limits (v1::Device).
#ifndef ATTUNE_SERVER_SPACE_SPACE_H_
#define ATTUNE_SERVER_SPACE_SPACE_H_

#include <cstdint>
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
};

struct Enumeration {
  std::vector<Variant> variants;  // in lexicographic order of the manifest's values
  int64_t product = 0;            // points before any constraint
  std::vector<Removed> removed;   // product = variants.size() + sum of counts, always; no count is 0
};

// Whether the family applies at all: FailedPrecondition carries the first problem limit that does not hold.
absl::Status Applies(const Family& family, const Problem& problem, const v1::Device& device);

// Depth first over the parameters; a constraint is tried as soon as every parameter it mentions has a value, and
// a rejection there counts the whole subtree. Exact: what remains is what filtering the full product would leave.
// To the manifest's own rules come the device's limits on any launch (threads and dynamic shared memory a block, grid),
// so that no variant is offered to a device that could not launch it.
absl::StatusOr<Enumeration> Enumerate(const std::shared_ptr<const Family>& family, const Problem& problem,
                                      const v1::Device& device);

// Whether one variant satisfies limits and constraints; FailedPrecondition carries the reason.
absl::Status Feasible(const Variant& variant, const Problem& problem, const v1::Device& device);

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
// come to a whole number in range; FailedPrecondition when the variant is not feasible.
absl::StatusOr<v1::LaunchRecipe> RecipeFor(const Variant& variant, const Problem& problem, const v1::Device& device);

// Resident CTAs an SM, waves and occupancy of the recipe's main launch, from the compiler's report and the device's
// limits (CUDA's occupancy rules: warps, blocks, registers by 256-register warp allocations, shared memory).
// OpenCL devices: one CTA a compute unit.
v1::Geometry GeometryOf(const v1::LaunchRecipe& recipe, const v1::Resources& resources, const v1::Device& device);

// The feasible variant whose compile-time parameters are the fewest steps from their manifest's guesses. Among equals,
// parallelism first: one with >= 4 CTAs an SM, or the most there are; then the fewest steps from the launch-time
// guesses. NotFound when nothing is feasible.
absl::StatusOr<Variant> Guess(std::shared_ptr<const Family> family, const Problem& problem, const v1::Device& device);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_SPACE_H_
