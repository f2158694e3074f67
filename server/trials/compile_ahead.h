// Compiles ahead of the device: a bounded window of candidates whose code is being found or compiled, or waits to run.
//
// Its own thread asks for candidates, looks into the cache, submits what is missing and stores what comes back, so that
// the device's thread only takes what is ready. Candidates with one compile key share one compile.
#ifndef ATTUNE_SERVER_TRIALS_COMPILE_AHEAD_H_
#define ATTUNE_SERVER_TRIALS_COMPILE_AHEAD_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "server/trials/code.h"

namespace attune::trials {

class CompileAhead {
 public:
  struct Item {
    size_t candidate = 0;
    std::string compile_key;
    std::function<worker::v1::CompileRequest()> request;  // called when there is something to compile
  };
  struct Ready {
    size_t candidate = 0;
    absl::StatusOr<CodePtr> code;  // an error: LOST, after some tries
  };
  struct Options {
    store::Store* store = nullptr;
    supervisor::CompilePool* pool = nullptr;
    const Job* job = nullptr;  // its stop ends a wait for the store
    std::string toolchain;
    int window = 1;  // compile keys asked for and not yet taken, at least 1
    int priority = 0;
    bool ignore_quarantine = false;  // compiles again what had a bad verdict
  };

  // `next` gives candidates until nullopt; it runs on this object's thread alone. `compiled` is called there after each
  // compile.
  CompileAhead(Options options, std::function<std::optional<Item>()> next, std::function<void()> compiled);
  // Stops. A compile in flight is left to the pool; its result is dropped.
  ~CompileAhead();

  // The next one that is ready, in the order in which they become so. Blocks; nullopt when there will be none any more.
  std::optional<Ready> Take();

  // Take returns nullopt from now on.
  void Stop();

 private:
  struct State;
  class Worker;

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_COMPILE_AHEAD_H_
