// When a call that brought no response is made again in a fresh worker.
//
// A worker that faults or exits was taken down by what it ran; that is a verdict. A signal that anybody may send, a
// stop or silence may be the host's doing (the OOM killer, an operator, load), and an answer that is none may be what
// another variant left behind in the worker, so nothing is blamed for it at first: the call is made again. What makes
// three workers babble, or is silent in two, is to blame after all. Signals come again and again on a host in trouble,
// and compiling one variant may take longer than the time between them: ten workers in a row must have met one.
#ifndef ATTUNE_SERVER_SUPERVISOR_TRIES_H_
#define ATTUNE_SERVER_SUPERVISOR_TRIES_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "server/supervisor/connection.h"

namespace attune::supervisor {

// Of one call.
class Tries {
 public:
  // Whether to make the call again after this result.
  bool Again(const CallResult& result) {
    ++made_;
    if (result.failure == CallFailure::kTimeout) return ++silent_ < kMostSilent;
    if (result.failure == CallFailure::kGarbage) return ++babbled_ < kMostBabbled;
    return result.failure == CallFailure::kDied && result.from_outside && ++killed_ < kMostKilled;
  }

  // Behind a failure's detail: " (3 tries, each in a fresh worker)"; nothing after one.
  std::string Words() const { return made_ > 1 ? absl::StrCat(" (", made_, " tries, each in a fresh worker)") : ""; }

 private:
  static constexpr int kMostSilent = 2;
  static constexpr int kMostKilled = 10;
  static constexpr int kMostBabbled = 3;

  int made_ = 0;
  int silent_ = 0;
  int killed_ = 0;
  int babbled_ = 0;
};

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_TRIES_H_
