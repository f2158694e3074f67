// All inputs that candidates share on the device, and what each must hold: a kernel that changes one would have the
// next candidate blamed.
//
// An inspector looks at all of them each time, and the host at what it has not found. Where the host is to look, it
// looks at one of them besides, in turn, whatever the inspector says. Without one the host looks at all; of large
// inputs, where nothing else points to damage, at one in turn. So does the inspector behind a quick look, which may
// take less than to read them all. What is found later may then be an earlier candidate's doing; known_intact() says
// so, and the caller repairs and repeats before it blames.
#ifndef ATTUNE_SERVER_VERIFY_PREPARED_SHARED_INPUTS_H_
#define ATTUNE_SERVER_VERIFY_PREPARED_SHARED_INPUTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/verify/case.h"
#include "server/verify/verify.h"

namespace attune::verify {

class SharedInputs {
 public:
  // `inspection` may be null, and outlives it otherwise.
  SharedInputs(bool large, Inspection* inspection) : large_(large), inspection_(inspection) {}

  // `buffers` holds `inputs` now; both outlive this. Returns its number, from 0. `name` is for messages.
  size_t Add(std::string name, InputBuffers& buffers, const CaseInputs& inputs);
  // Puts other inputs, which must fit, in place of a set's own, until Restore.
  absl::Status Replace(size_t set, const CaseInputs& inputs);
  absl::Status Restore(size_t set);

  // Empty, or which input was changed or written around. The inspector looks first, unless that is the host's part.
  absl::StatusOr<std::string> DamageTo(size_t set, PreparedProblem::Look look) const;
  // What the host looks at. kInTurn: one set, the next one each time, of what an inspector has found intact and of
  // large inputs that none has seen; else all. kFew of large inputs: the first set, which is what was read, and one in
  // turn, for whoever looks; of others as kInTurn.
  enum class Which { kAll, kInTurn, kFew };
  absl::StatusOr<std::string> Damage(Which which, PreparedProblem::Look look);
  // All of them, whatever they hold.
  absl::Status Repair();

  bool large() const { return large_; }
  // All were intact when they were looked at last, and a kernel that ran since was looked after.
  bool known_intact() const { return known_intact_; }

 private:
  struct Set {
    std::string name;
    InputBuffers* buffers;
    const CaseInputs* own;
    const CaseInputs* now;
  };

  // Whether the inspector finds these sets as they must be; false also when there is none.
  absl::StatusOr<bool> SeenIntact(size_t first, size_t count) const;
  // As DamageTo, by the host alone.
  absl::StatusOr<std::string> HostFindsDamageTo(size_t set) const;

  const bool large_;
  Inspection* const inspection_;
  std::vector<Set> sets_;
  size_t turn_ = 0;
  bool known_intact_ = true;
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_PREPARED_SHARED_INPUTS_H_
