// Stand-ins for attention kernels on FakeDevice: right ones to be made wrong in a test's own way.
#ifndef ATTUNE_SERVER_VERIFY_TESTING_FAKE_KERNELS_H_
#define ATTUNE_SERVER_VERIFY_TESTING_FAKE_KERNELS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "server/verify/half.h"
#include "server/verify/testing/fake_device.h"
#include "server/verify/verify.h"

namespace attune::verify {

inline HostResult Compute(const Problem& problem, const FakeArguments& arguments) {
  const auto values = []<typename T>(const FakePointer& pointer, T) {
    return std::vector<T>(pointer.as<T>(), pointer.as<T>() + pointer.size / sizeof(T));
  };
  const auto elements = [&](const FakePointer& pointer) { return values(pointer, uint16_t{}); };
  const auto numbers = [&](const FakePointer& pointer) { return values(pointer, int32_t{}); };
  Tensors inputs = {elements(arguments.q),         elements(arguments.k),
                    elements(arguments.v),         values(arguments.sinks, float{}),
                    numbers(arguments.q_bounds),   numbers(arguments.kv_bounds),
                    numbers(arguments.kv_lengths), numbers(arguments.page_table)};
  if (HasScales(problem)) {
    inputs.k_codes = values(arguments.k, uint8_t{});
    inputs.v_codes = values(arguments.v, uint8_t{});
    inputs.k_scales = values(arguments.k_scale, float{});
    inputs.v_scales = values(arguments.v_scale, float{});
  }
  return HostReference(problem, inputs);
}

// Writes O in the dtype, and LSE when it is bound.
inline FakeKernel RightKernel(const Problem& problem) {
  return [problem](const FakeArguments& arguments) {
    const HostResult result = Compute(problem, arguments);
    std::transform(result.o.begin(), result.o.end(), arguments.o.as<uint16_t>(),
                   [&problem](float value) { return FromFloat(problem.dtype, value); });
    if (arguments.lse.data != nullptr) std::copy(result.lse.begin(), result.lse.end(), arguments.lse.as<float>());
    return absl::OkStatus();
  };
}

// Writes O as fp32, rounded to the dtype first when `round`, and LSE.
inline FakeKernel ReferenceKernel(const Problem& problem, bool round) {
  return [problem, round](const FakeArguments& arguments) {
    const HostResult result = Compute(problem, arguments);
    std::transform(result.o.begin(), result.o.end(), arguments.o.as<float>(), [&](float value) {
      return round ? ToFloat(problem.dtype, FromFloat(problem.dtype, value)) : value;
    });
    std::copy(result.lse.begin(), result.lse.end(), arguments.lse.as<float>());
    return absl::OkStatus();
  };
}

// Registers the references as artifacts "exact" and "plain" and asks for them.
inline worker::v1::PrepareRequest PrepareOn(FakeDevice& device, const Problem& problem, uint64_t seed = 1) {
  device.kernels["exact"] = ReferenceKernel(problem, false);
  device.kernels["plain"] = ReferenceKernel(problem, true);
  worker::v1::PrepareRequest request;
  *request.mutable_problem() = ToProto(problem);
  request.set_seed(seed);
  request.mutable_exact()->set_artifact("exact");
  request.mutable_exact()->mutable_recipe()->add_launches()->set_entry("exact");
  request.mutable_plain()->set_artifact("plain");
  request.mutable_plain()->mutable_recipe()->add_launches()->set_entry("plain");
  return request;
}

inline worker::v1::Candidate CandidateOf(const std::string& artifact, bool deterministic = true) {
  worker::v1::Candidate candidate;
  candidate.set_artifact(artifact);
  candidate.set_deterministic(deterministic);
  candidate.mutable_recipe()->add_launches()->set_entry("attention");
  return candidate;
}

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_TESTING_FAKE_KERNELS_H_
