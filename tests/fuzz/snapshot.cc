// A client's snapshot file. Its digest is made right here, so that what is behind it is reached.
#include "client/cpp/snapshot.h"

#include <openssl/sha.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "proto/attune/objective.h"
#include "tests/fuzz/scratch_file.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

constexpr size_t kHeaderBytes = 24;
constexpr size_t kBodyOffset = kHeaderBytes + SHA256_DIGEST_LENGTH;

std::string WithDigest(absl::string_view input) {
  std::string bytes(input);
  if (bytes.size() < kBodyOffset) return bytes;
  const std::string covered = absl::StrCat(input.substr(0, kHeaderBytes), input.substr(kBodyOffset));
  SHA256(reinterpret_cast<const unsigned char*>(covered.data()), covered.size(),
         reinterpret_cast<unsigned char*>(bytes.data()) + kHeaderBytes);
  return bytes;
}

std::string Written() { return absl::StrCat("/dev/shm/attune-fuzz-snapshot-", getpid()); }

ATTUNE_FUZZ_TARGET(snapshot) {
  const ScratchFile file(WithDigest(input));
  const auto snapshot = Snapshot::Load(file.path());
  if (!snapshot.ok()) {
    const bool version = absl::IsFailedPrecondition(snapshot.status());
    return ExpectRefusal(snapshot.status(),
                         version ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kDataLoss, {file.path()});
  }
  for (const SnapshotAnswer& entry : (*snapshot)->answers()) {
    const absl::StatusOr<Problem> problem = FromProto(entry.request.problem());
    if (!problem.ok()) continue;
    const v1::Objective objective = UnlessTime(entry.request.objective());
    Expect((*snapshot)->Find({*problem, entry.request.device_id(), entry.request.policy(), objective}) != nullptr ||
               entry.request.device_id().empty(),
           "an answer that is there is found");
  }
  Expect((*snapshot)->Write(Written()).ok(), "a snapshot can be written");
  const auto again = Snapshot::Load(Written());
  std::filesystem::remove(Written());
  Expect(again.ok() && (*again)->answers().size() == (*snapshot)->answers().size() &&
             (*again)->exported() == (*snapshot)->exported(),
         "a snapshot reads back as itself");
}

}  // namespace
}  // namespace attune::fuzz
