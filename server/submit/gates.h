// Rules of thumb that a kernel may break, as authors of attention kernels know them: pure functions over a trial.
#ifndef ATTUNE_SERVER_SUBMIT_GATES_H_
#define ATTUNE_SERVER_SUBMIT_GATES_H_

#include <vector>

#include "attune/v1/device.pb.h"
#include "attune/v1/submission.pb.h"

namespace attune::submit {

inline constexpr double kRegression = 0.02;  // slower than the base by more reverts

// What the trial of the submission's best variant shows, what reverts first. `speedup`: over the base, 0 without one.
std::vector<v1::GateFinding> GatesOf(const v1::Trial& trial, const v1::Device& device, double speedup);

// Whether one of them reverts.
bool Reverts(const std::vector<v1::GateFinding>& gates);

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_GATES_H_
