// The reference results that lie on the device. No candidate is given them, but a stray write reaches them, and the
// next candidate would be compared with what it left.
#ifndef ATTUNE_SERVER_VERIFY_PREPARED_SHARED_REFERENCES_H_
#define ATTUNE_SERVER_VERIFY_PREPARED_SHARED_REFERENCES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/verify/case.h"
#include "server/verify/inspection.h"

namespace attune::verify {

class SharedReferences {
 public:
  // Null: no references lie on the device. `inspection` outlives this otherwise.
  explicit SharedReferences(Inspection* inspection) : inspection_(inspection) {}

  // Outlives this.
  void Add(Case& of) { cases_.push_back(&of); }

  // Empty, or that one was written to or around. kInTurn: one of them is looked at, the next one each time.
  enum class Which { kAll, kInTurn };
  absl::StatusOr<std::string> Damage(Which which);
  // All of them, from what the host holds, whatever they hold.
  absl::Status Repair();

 private:
  Inspection* const inspection_;
  std::vector<Case*> cases_;
  size_t turn_ = 0;
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_PREPARED_SHARED_REFERENCES_H_
