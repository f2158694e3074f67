// What the commands that ask for a preflight, `preflight` and `space`, have in common.
#ifndef ATTUNE_CLIENT_CLI_PREFLIGHT_TEXT_H_
#define ATTUNE_CLIENT_CLI_PREFLIGHT_TEXT_H_

#include <string>
#include <vector>

#include "attune/v1/service.pb.h"
#include "client/cli/session.h"
#include "proto/attune/problem.h"

namespace attune::cli {

v1::PreflightRequest MakePreflightRequest(const Session& session, const Problem& problem,
                                          const std::vector<std::string>& families);

// "78"; "> 2000000" of a space that is too large to be counted.
std::string VariantCount(const v1::PreflightResponse::Family& family);

// Whether the server has counted compiles; it does not where there are too many variants to list.
bool CompilesKnown(const v1::PreflightResponse::Family& family);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_PREFLIGHT_TEXT_H_
