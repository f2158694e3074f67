// The world a command runs in: its streams, its terminal, its environment variables. Tests stand in for it.
#ifndef ATTUNE_CLIENT_CLI_ENVIRONMENT_H_
#define ATTUNE_CLIENT_CLI_ENVIRONMENT_H_

#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <string>

#include "client/cli/interrupts.h"

namespace attune::cli {

struct Environment {
  std::ostream& out;  // results
  std::ostream& err;  // progress, questions, errors
  std::istream& in;   // problems, where "-" stands for one
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool in_is_terminal = false;
  int width = 0;                                            // columns of the terminal; 0: no terminal, no limit
  std::function<std::string(const std::string&)> variable;  // "" when it is not set
  std::unique_ptr<Interrupts> interrupts;
};

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_ENVIRONMENT_H_
