// The kernels that a backend brings for checking and for the launch floor.
#ifndef ATTUNE_SERVER_TRIALS_REFERENCE_H_
#define ATTUNE_SERVER_TRIALS_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/catalog/family_list.h"
#include "server/catalog/tuning_key.h"
#include "server/trials/code.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"

namespace attune::trials {

using Families = catalog::FamilyList;

// What keeps the device from this daemon altogether, such as another daemon that holds it. Asked before a job compiles
// anything for the device. OK while another job uses it.
absl::Status OpenDevice(DeviceSlot& slot, const Job& job);

// Compiles both reference kernels if need be, then waits for the job's turn and prepares the device for the tuning_key.
// `seed` is the inputs': InputSeed, or that of the play-off that comes first. `at_turn` is told, before it prepares,
// what the device is given. FailedPrecondition when the backend has no reference family or it does not apply.
absl::StatusOr<std::unique_ptr<DeviceUse>> TakeDevice(
    DeviceSlot& slot, const catalog::TuningKey& tuning_key, const Families& families, const CodeSource& code,
    const Job& job, uint64_t seed, const std::function<void(const worker::v1::PrepareRequest&)>& at_turn = nullptr);
// Of trials: it follows from the problem.
uint64_t InputSeed(const catalog::TuningKey& tuning_key);

// The median of an empty launch, us; 0 when the backend has no floor family.
absl::StatusOr<double> MeasureFloor(const catalog::TuningKey& tuning_key, const Families& families,
                                    const CodeSource& code, const Job& job, DeviceUse& device);

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_REFERENCE_H_
