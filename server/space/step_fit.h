// Integers that change in equal steps, at equal distances.
#ifndef ATTUNE_SERVER_SPACE_STEP_FIT_H_
#define ATTUNE_SERVER_SPACE_STEP_FIT_H_

#include <cstdint>

#include "attune/v1/launch.pb.h"

namespace attune::space {

// Fits base + slope * floor((x + add) / divide) to the values at x = first, first + 1, ..., exactly.
class StepFit {
 public:
  StepFit(int64_t first, int64_t value) : first_(first), end_(first + 1), initial_(value), last_(value) {}

  // Takes the next value. False when no such function has it and all those before; it is then not taken.
  bool Take(int64_t value);
  bool constant() const { return jump_ < 0; }
  // Of all that was taken.
  v1::Step step() const;

 private:
  int64_t first_;
  int64_t end_;
  int64_t initial_;
  int64_t last_;
  int64_t jump_ = -1;   // the first x whose value is another than the one before
  int64_t slope_ = 0;   // by how much
  int64_t period_ = 0;  // from one such x to the next; 0: there was only one
};

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_STEP_FIT_H_
