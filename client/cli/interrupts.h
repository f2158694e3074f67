// Ctrl-C and the keyboard, as the commands that follow an operation see them.
#ifndef ATTUNE_CLIENT_CLI_INTERRUPTS_H_
#define ATTUNE_CLIENT_CLI_INTERRUPTS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace attune::cli {

class Interrupts {
 public:
  // Listening goes on until it is destroyed.
  class Listener {
   public:
    virtual ~Listener() = default;
  };

  virtual ~Interrupts() = default;
  // Calls `on_interrupt`, on a thread of its own, at each Ctrl-C, which no longer ends the process. One listener at a
  // time.
  virtual std::unique_ptr<Listener> Listen(std::function<void()> on_interrupt) = 0;
  // A line from the keyboard; nullopt when Ctrl-C or the end of input comes instead.
  virtual std::optional<std::string> ReadLine() = 0;
};

// The process's own SIGINT and standard input.
std::unique_ptr<Interrupts> ProcessInterrupts();

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_INTERRUPTS_H_
