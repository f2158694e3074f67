// Compiled code and where it comes from: the store when it has it, the compile pool otherwise.
#ifndef ATTUNE_SERVER_TRIALS_CODE_H_
#define ATTUNE_SERVER_TRIALS_CODE_H_

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/catalog/tuning_key.h"
#include "server/space/space.h"
#include "server/store/store.h"
#include "server/supervisor/compile_pool.h"
#include "server/trials/job.h"

namespace attune::trials {

// What a compile key gave; `report.verdict` says whether there is an artifact.
struct Code {
  store::CompiledArtifact report;
  std::string artifact;  // empty unless the verdict is OK
  bool cached = false;   // from the store: nothing was compiled
  // Otherwise when that began, and by which of the compile workers.
  absl::Time compile_begin = absl::InfinitePast();
  int compile_worker = 0;
};
using CodePtr = std::shared_ptr<const Code>;

// Whether to submit a compile again that the pool failed at: not for ever, and not when it is shut down or has no such
// compiler. `tries`: how often it was submitted.
inline bool WorthAnotherTry(const absl::Status& failed, int tries) {
  constexpr int kMostTries = 3;
  return tries < kMostTries && !absl::IsCancelled(failed) && !absl::IsUnavailable(failed);
}

worker::v1::CompileRequest MakeCompileRequest(const space::Family& family, const space::CompileSpec& spec,
                                              const v1::Device& device);

// What the store has, bad verdicts (the quarantine) included; NotFound otherwise, also when an artifact's file is lost
// or damaged.
absl::StatusOr<CodePtr> FindCode(store::Store& store, absl::string_view compile_key, absl::string_view toolchain);

// Stores what a compile gave, good or bad. For a job: waits while the store is unavailable, until the job is stopped.
absl::StatusOr<CodePtr> KeepCode(store::Store& store, absl::string_view compile_key, absl::string_view toolchain,
                                 worker::v1::CompileResponse response);
absl::StatusOr<CodePtr> KeepCode(store::Store& store, absl::string_view compile_key, absl::string_view toolchain,
                                 worker::v1::CompileResponse response, const Job& job);

// Where code comes from. Thread-safe; store and pool outlive it.
class CodeSource {
 public:
  CodeSource(store::Store& store, supervisor::CompilePool& pool) : store_(store), pool_(pool) {}

  store::Store& store() const { return store_; }
  supervisor::CompilePool& pool() const { return pool_; }

  // Found or compiled now; blocks. The verdict must be OK: FailedPrecondition has the compiler's first error otherwise.
  // Cancelled when the job was stopped first.
  absl::StatusOr<CodePtr> Get(const space::Family& family, const space::CompileSpec& spec,
                              const catalog::TuningKey& tuning_key, const Job& job) const;

 private:
  store::Store& store_;
  supervisor::CompilePool& pool_;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_CODE_H_
