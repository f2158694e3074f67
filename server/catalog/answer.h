// A look-up's answer, ready but for its artifact's bytes.
#ifndef ATTUNE_SERVER_CATALOG_ANSWER_H_
#define ATTUNE_SERVER_CATALOG_ANSWER_H_

#include <memory>
#include <optional>
#include <string>

#include "attune/v1/service.pb.h"
#include "proto/attune/problem.h"
#include "server/catalog/policy.h"
#include "server/space/space.h"

namespace attune::catalog {

struct Answer {
  v1::GetBestResponse response;
  Problem problem;
  v1::Policy policy = kDefaultPolicy;
  std::optional<space::Variant> variant;  // as today's families have it
  std::string compile_key;                // of `variant` for `problem`
  // The compiler that made the answer's code from the sources as they are today; empty when there is no such code.
  std::string toolchain;
  v1::Resources resources;
};
using AnswerPtr = std::shared_ptr<const Answer>;

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_ANSWER_H_
