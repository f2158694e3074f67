// A server's served incumbents in one file, to answer from when the server cannot be reached.
//
// The file, format version 1 (integers little-endian):
//   offset  0   8 bytes   "ATTNSNAP"
//           8   4 bytes   version, 1
//          12   4 bytes   number of answers
//          16   8 bytes   when it was exported, seconds since 1970-01-01 UTC
//          24  32 bytes   SHA-256 over bytes 0..23 and everything from byte 56 on
//          56             messages, each as a varint length and that many bytes: one attune.v1.ListDevicesResponse,
//          then
//                         for each answer an attune.v1.GetBestRequest (what it answers) and its GetBestResponse
// Answers with an objective stand before the fastest of the same problem: who knows of no objectives takes the last.
#ifndef ATTUNE_CLIENT_CPP_SNAPSHOT_H_
#define ATTUNE_CLIENT_CPP_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "client/cpp/answer_cache.h"

namespace attune {

struct SnapshotAnswer {
  v1::GetBestRequest request;  // problem, device and policy are set; of the best by energy the objective, too
  AnswerPtr answer;
};

// Immutable once made, so thread-safe.
class Snapshot {
 public:
  Snapshot(absl::Time exported, v1::ListDevicesResponse devices, std::vector<SnapshotAnswer> answers);

  // DataLoss when the file is damaged, FailedPrecondition when another version wrote it, NotFound when there is none.
  static absl::StatusOr<std::shared_ptr<const Snapshot>> Load(const std::string& path);

  // Writes a temporary file beside `path`, then renames it: readers see the old file or the new one, whole.
  absl::Status Write(const std::string& path) const;

  // Null when there is no such answer. An empty device means the first of `devices()`; a UUID or a class's alias will
  // do as well. A problem without an answer of its own has that of the first range it lies in, NEAREST where the
  // range's own problem was tuned: by axis (KV, Q_AND_KV, Q, BATCH), then as the file has them. Otherwise provenance is
  // as the server gave it. The detail says that the answer comes from a snapshot, and of when. By an objective that has
  // no answer here the fastest is found, and the detail says so.
  AnswerPtr Find(const AnswerKeyView& key) const;

  absl::Time exported() const { return exported_; }
  const v1::ListDevicesResponse& devices() const { return devices_; }
  const std::vector<SnapshotAnswer>& answers() const { return answers_; }

 private:
  struct Range {
    v1::Domain::Axis axis;
    int64_t low;
    int64_t high;
    size_t answer;  // of answers_
  };
  AnswerPtr FindBy(const AnswerKeyView& key) const;
  AnswerPtr FindOn(const AnswerKeyView& key) const;
  AnswerPtr FindInARange(const AnswerKeyView& key) const;

  absl::Time exported_;
  v1::ListDevicesResponse devices_;
  std::vector<SnapshotAnswer> answers_;
  absl::flat_hash_map<AnswerKey, AnswerPtr, AnswerKeyHash, AnswerKeyEqual> index_;
  // By what the problems of a range have in common.
  absl::flat_hash_map<AnswerKey, std::vector<Range>, AnswerKeyHash, AnswerKeyEqual> ranges_;
};

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_SNAPSHOT_H_
