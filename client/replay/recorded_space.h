// A space whose every variant's outcome is known, as strategies see it and as only the replay does.
#ifndef ATTUNE_CLIENT_REPLAY_RECORDED_SPACE_H_
#define ATTUNE_CLIENT_REPLAY_RECORDED_SPACE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/replay/v1/recording.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/search/field.h"

namespace attune::replay {

struct RecordedSpace {
  std::string name;                       // the problem's text
  search::Field field;                    // without anything known; with codes
  std::vector<search::Outcome> outcomes;  // of every candidate
  double best_us = 0;                     // the least of them
  std::vector<double> compile_ms;         // of each of field.codes; empty where none was recorded
};

// Whether a trial that ended so was right as far as it was checked, and has a time.
inline bool IsTimed(attune::v1::Verdict verdict) {
  return verdict == attune::v1::VERDICT_OK || verdict == attune::v1::VERDICT_SLOW;
}

// Whether it ended so: row.median_us is a time then.
inline bool HasTime(const v1::Row& row) { return IsTimed(row.verdict()) && row.median_us() > 0; }

// InvalidArgument where the recordings cannot be compared: they are of several classes of device, policies, or sources
// of one family.
absl::Status CheckAreOfOne(const std::vector<v1::Recording>& recordings);

// InvalidArgument says what is wrong with the recording: its problem, no good trial, a row with another number of
// values or features than there are names, an unknown family.
absl::StatusOr<RecordedSpace> SpaceOf(const v1::Recording& recording);

// Its rows of one family alone, which then is families[0]. `family` may be empty where there is only one.
// InvalidArgument says which it has.
absl::StatusOr<v1::Recording> OnlyFamily(const v1::Recording& recording, const std::string& family);

// A row's variant, as space::Variant::ToText writes it; the recording is as SpaceOf takes it.
std::string VariantText(const v1::Recording& recording, const v1::Row& row);

// As the neighbour of another problem whose features are the same: its rows, this far away.
search::Neighbour NeighbourOf(const RecordedSpace& space, double distance);

// gzip-compressed. NotFound, DataLoss when it is no recording.
absl::StatusOr<v1::Recording> ReadRecording(const std::string& path);
absl::StatusOr<std::vector<v1::Recording>> ReadRecordings(const std::vector<std::string>& paths);
absl::Status WriteRecording(const v1::Recording& recording, const std::string& path);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_RECORDED_SPACE_H_
