// What one walk over a space may cost.
#ifndef ATTUNE_SERVER_SPACE_STEPS_H_
#define ATTUNE_SERVER_SPACE_STEPS_H_

#include <cstdint>

#include "server/space/space.h"

namespace attune::space {

// Counts the steps of a walk up to `most`, and asks now and then whether anybody still waits for it.
class Steps {
 public:
  // `stopped` lives longer.
  explicit Steps(const Stopped& stopped, int64_t most = kMostSteps) : stopped_(stopped), most_(most) {}

  // False when there is no further one to take.
  bool Take() {
    if (taken_ == most_) return false;
    if (taken_++ % kBetweenQuestions == 0 && stopped_ && stopped_()) was_stopped_ = true;
    return !was_stopped_;
  }
  bool stopped() const { return was_stopped_; }

 private:
  static constexpr int64_t kBetweenQuestions = 1024;

  const Stopped& stopped_;
  const int64_t most_;
  int64_t taken_ = 0;
  bool was_stopped_ = false;
};

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_STEPS_H_
