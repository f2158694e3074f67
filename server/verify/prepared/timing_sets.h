// Further sets of inputs and outputs that timing rotates through, so that a run does not find its inputs in L2.
#ifndef ATTUNE_SERVER_VERIFY_PREPARED_TIMING_SETS_H_
#define ATTUNE_SERVER_VERIFY_PREPARED_TIMING_SETS_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "proto/attune/problem.h"
#include "server/device/device.h"
#include "server/verify/case.h"
#include "server/verify/case_inputs.h"
#include "server/verify/inspection.h"
#include "server/verify/outputs.h"
#include "server/verify/prepared/shared_inputs.h"

namespace attune::verify {

class TimingSets {
 public:
  struct Set {
    InputBuffers inputs;
    Outputs outputs;
  };

  // As many sets of these `inputs` as it takes, with the one that there is already, to exceed twice the L2; at most 8,
  // and at most a quarter of the device's memory. Adds each to `shared`, which this and `inputs` outlive. Makes only
  // those that are missing. As the device says, where it fails; those made before stay.
  absl::Status Make(device::Device& device, const Problem& problem, const CaseInputs& inputs, Inspection* inspection,
                    SharedInputs& shared);

  size_t size() const { return sets_.size(); }
  Set& operator[](size_t i) { return sets_[i]; }
  std::vector<Set>::iterator begin() { return sets_.begin(); }
  std::vector<Set>::iterator end() { return sets_.end(); }

 private:
  std::vector<Set> sets_;  // never moves its elements: `shared` points to them
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_PREPARED_TIMING_SETS_H_
