// Compiles ahead of the device: a bounded window of candidates whose code is being found or compiled, or waits to run.
//
// Its own thread asks what is wanted, looks into the cache, submits what is missing and stores what comes back, so that
// the device's thread only takes what is ready. Candidates with one compile key share one compile. What is wanted no
// more leaves the window; a compile of it that is under way is stored all the same.
#ifndef ATTUNE_SERVER_TRIALS_COMPILE_AHEAD_H_
#define ATTUNE_SERVER_TRIALS_COMPILE_AHEAD_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "server/search/strategy.h"
#include "server/trials/code.h"

namespace attune::trials {

class CompileAhead {
 public:
  struct Item {
    size_t candidate = 0;
    std::string compile_key;
    std::function<worker::v1::CompileRequest()> request;  // called when there is something to compile
  };
  // What to do next.
  struct Wanted {
    std::optional<Item> item;     // to have ready; none: nothing for now
    std::vector<size_t> dropped;  // candidates asked for before and not taken, wanted no more
    bool over = false;            // nothing more will be asked for
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

  // `next` is asked, on this object's thread alone, while there is `room` for an item, until it gives none; and after
  // each Take and Wake, and when a Take begins to wait, with or without room. `compiled` is called there after each
  // compile.
  using Next = std::function<Wanted(bool room)>;
  CompileAhead(Options options, Next next, std::function<void()> compiled);
  // Ends. A compile in flight is left to the pool; its result is dropped.
  ~CompileAhead();

  // What `choose` picks among those that are ready, in the order in which they became so, or none. It is asked whenever
  // something may have changed, on the caller's thread. Blocks; nullopt when it says that it is done, or when there
  // will be none any more. Several threads may take; one of them chooses at a time.
  using Choose = absl::FunctionRef<search::Choice(const std::vector<size_t>& ready)>;
  std::optional<Ready> Take(Choose choose);

  // `next` and `choose` may answer otherwise than before.
  void Wake();

  // Whether Take returns nullopt whatever `choose` says.
  bool over() const;
  // Take returns nullopt from now on.
  void Stop();
  // Stops, and waits until `next` and `compiled` are called no more. For one thread.
  void End();

 private:
  struct State;
  class Worker;

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_COMPILE_AHEAD_H_
