// Which other problems an answer holds for.
#ifndef ATTUNE_SERVER_CATALOG_ANSWER_DOMAINS_H_
#define ATTUNE_SERVER_CATALOG_ANSWER_DOMAINS_H_

#include <google/protobuf/repeated_field.h>

#include <functional>
#include <vector>

#include "attune/v1/device.pb.h"
#include "attune/v1/launch.pb.h"
#include "proto/attune/problem.h"
#include "server/catalog/answers/answer.h"

namespace attune::catalog {

// What an answer is for, and what bounds it.
struct DomainQuestion {
  Problem problem;
  AnswerPtr answer;  // null: there is none, which holds for other problems too
  const v1::Device* device = nullptr;
  std::vector<Problem> tuned;  // they have answers of their own
  // The answer that another problem, which is not tuned, would be given; null: none.
  std::function<AnswerPtr(const Problem&)> answer_for;
};

// The domains of each axis that has more than the problem itself. A range stays within the octave of the problem's
// length, so that nothing is launched for lengths much longer than it was chosen for and misses are heard of from every
// octave; long octaves are divided (space::kMostLengths). It ends at the next tuned length, where the variant or its
// code would be another (looked for at some lengths, and then to the exact one), and where the recipe does not follow
// (space::DomainsOf, which is asked at every length).
google::protobuf::RepeatedPtrField<v1::Domain> DomainsFor(const DomainQuestion& question);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_ANSWER_DOMAINS_H_
