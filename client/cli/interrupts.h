// Ctrl-C and the keyboard, as the commands that follow an operation see them, and what ends those that serve.
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
  // As Listen, also at SIGTERM: of what runs until it is ended.
  virtual std::unique_ptr<Listener> ListenForEnd(std::function<void()> on_end) = 0;
  // A line from the keyboard; nullopt when Ctrl-C or the end of input comes instead.
  virtual std::optional<std::string> ReadLine() = 0;
};

// The process's own signals and standard input.
std::unique_ptr<Interrupts> ProcessInterrupts();

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_INTERRUPTS_H_
