// Where the code comes from of answers that nobody tuned, NEAREST and HEURISTIC: found, or compiled when such an answer
// is first given.
#ifndef ATTUNE_SERVER_CATALOG_CODE_SUPPLY_H_
#define ATTUNE_SERVER_CATALOG_CODE_SUPPLY_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/answers/answer.h"

namespace attune::catalog {

// What is known of an answer's code.
struct CodeState {
  v1::ArtifactState state = v1::ARTIFACT_STATE_UNSPECIFIED;
  std::string sha256;  // of READY
  std::string why;     // of NONE
};

// Thread-safe.
class CodeSupply {
 public:
  virtual ~CodeSupply() = default;

  // Never blocks. What nothing is known of is COMPILING from then on; NONE when too much is under way already.
  virtual CodeState Ask(const AnswerPtr& answer) = 0;
  // The same for code that was READY and is lost: it is made again.
  virtual CodeState AskForLost(const AnswerPtr& answer) = 0;
  // Whether the code of a compile key is known to be of no use: it does not compile, no device here can launch
  // it, or it was condemned.
  virtual bool IsUseless(absl::string_view compile_key) const = 0;
  // What a trial found wrong with it: useless from now on.
  virtual void Condemn(absl::string_view compile_key, std::string why) = 0;
  virtual uint64_t useless() const = 0;  // how many were found so far
  // Has those looked at again when they are asked for: somebody wants them tried again.
  virtual void ForgetUseless() = 0;

  // Grows whenever Ask may say something else than before.
  virtual uint64_t version() const = 0;
  // Calls `known` once the code of a compile key is no longer COMPILING, or `patience` is over; at once when it is not
  // COMPILING, or too many wait. `known` must not block.
  virtual void Await(absl::string_view compile_key, absl::Duration patience, std::function<void()> known) = 0;
};

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_CODE_SUPPLY_H_
