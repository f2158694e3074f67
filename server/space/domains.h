// The lengths at which a variant is the same code, launched with other numbers.
#ifndef ATTUNE_SERVER_SPACE_DOMAINS_H_
#define ATTUNE_SERVER_SPACE_DOMAINS_H_

#include <cstdint>
#include <vector>

#include "attune/v1/device.pb.h"
#include "attune/v1/launch.pb.h"
#include "proto/attune/problem.h"
#include "server/space/space.h"

namespace attune::space {

// Of one axis, which a search looks at; a recipe is evaluated at each.
inline constexpr int64_t kMostLengths = 8192;
// Domains of one axis.
inline constexpr int kMostDomains = 16;

// The domains along `axis` around the problem's own length, within low..high, which has it and at most kMostLengths: as
// far as the variant is feasible without a gap, its code the same, and its recipe differs in numbers alone. A new
// domain begins where a number no longer changes in equal steps; of more than kMostDomains those with the own length
// and the next ones above stay. In ascending order; none where the own length is not feasible.
std::vector<v1::Domain> DomainsOf(const Variant& variant, const Problem& problem, const v1::Device& device,
                                  v1::Domain::Axis axis, int64_t low, int64_t high);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_DOMAINS_H_
