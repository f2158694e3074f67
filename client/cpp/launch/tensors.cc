#include "client/cpp/launch/tensors.h"

#include <array>
#include <bit>

#include "absl/strings/str_cat.h"

namespace attune::launch {
namespace {

constexpr int kOfElements = 4;  // q, k, v and o, of which kernels load 16 bytes at once
constexpr Address kElementsAlignment = 16;
constexpr Address kNumbersAlignment = 4;

using Addresses = std::array<Address, kTensors>;

absl::Status WhatIsWrong(const Addresses& addresses, unsigned wanted) {
  for (int i = 0; i < kTensors; ++i) {
    const bool has = (wanted >> i & 1) != 0;
    if (has && addresses[i] == 0) {
      return absl::InvalidArgumentError(absl::StrCat(kTensorNames[i], " is null; the problem asks for it"));
    }
    if (!has && addresses[i] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(kTensorNames[i], " is given; the problem does not ask for it"));
    }
    const Address alignment = i < kOfElements ? kElementsAlignment : kNumbersAlignment;
    if (addresses[i] % alignment != 0) {
      return absl::InvalidArgumentError(absl::StrCat(kTensorNames[i], " is at address 0x", absl::Hex(addresses[i]),
                                                     "; it must be a multiple of ", alignment, " bytes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Problem ProblemOf(const Problem& form, const Shape& shape) {
  Problem problem = form;
  problem.batch = shape.batch;
  problem.seq_q = shape.seq_q;
  problem.seq_kv = shape.seq_kv;
  return problem;
}

unsigned TensorsOf(const Problem& problem) {
  const bool paged = problem.page_size > 0;
  const bool scaled = HasScales(problem);
  const bool has[kTensors] = {true,        true,          true,           true,
                              problem.lse, problem.sinks, problem.varlen, problem.varlen && !paged,
                              paged,       paged,         scaled,         scaled};
  unsigned bits = 0;
  for (int i = 0; i < kTensors; ++i) bits |= static_cast<unsigned>(has[i]) << i;
  return bits;
}

absl::Status CheckTensors(const Tensors& tensors, unsigned wanted) {
  const Addresses addresses = std::bit_cast<Addresses>(tensors);
  Address elements = 0, numbers = 0;
  unsigned given = 0;
  for (int i = 0; i < kTensors; ++i) {
    (i < kOfElements ? elements : numbers) |= addresses[i];
    given |= static_cast<unsigned>(addresses[i] != 0) << i;
  }
  if (given == wanted && elements % kElementsAlignment == 0 && numbers % kNumbersAlignment == 0) {
    return absl::OkStatus();
  }
  return WhatIsWrong(addresses, wanted);
}

}  // namespace attune::launch
