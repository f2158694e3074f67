// The process that `attune` runs in.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "client/cli/cli.h"

namespace {

int TerminalWidth() {
  winsize size = {};
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  attune::cli::Environment env = {
      .out = std::cout,
      .err = std::cerr,
      .in = std::cin,
      .out_is_terminal = isatty(STDOUT_FILENO) == 1,
      .err_is_terminal = isatty(STDERR_FILENO) == 1,
      .in_is_terminal = isatty(STDIN_FILENO) == 1,
      .width = TerminalWidth(),
      .variable =
          [](const std::string& name) {
            const char* value = std::getenv(name.c_str());
            return std::string(value == nullptr ? "" : value);
          },
      .interrupts = attune::cli::ProcessInterrupts(),
  };
  return attune::cli::RunCli({argv + 1, argv + argc}, env);
}
