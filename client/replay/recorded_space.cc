#include "client/replay/recorded_space.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/problem.h"

namespace attune::replay {
namespace {

search::Outcome OutcomeOf(const v1::Row& row) {
  return HasTime(row) ? search::Outcome::Timed(row.median_us()) : search::Outcome::Failed();
}

// Of each code, numbered as they come. One that was in the store before has the median of the others.
void AddCodes(const v1::Recording& recording, RecordedSpace& space) {
  std::map<int, size_t> numbers;
  std::vector<double> known;
  for (const v1::Row& row : recording.rows()) {
    const auto [it, fresh] = numbers.try_emplace(row.code(), numbers.size());
    space.field.codes.push_back(it->second);
    if (fresh) space.compile_ms.push_back(0);
    double& ms = space.compile_ms[it->second];
    if (row.compile_ms() > 0) known.push_back(row.compile_ms());
    ms = std::max(ms, row.compile_ms());
  }
  if (known.empty()) return space.compile_ms.clear();
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  std::replace(space.compile_ms.begin(), space.compile_ms.end(), 0.0, *middle);
}

absl::Status CheckRow(const v1::Recording& recording, int index) {
  const v1::Row& row = recording.rows(index);
  const auto wrong = [&](absl::string_view field, int64_t value, int64_t allowed) {
    return absl::InvalidArgumentError(absl::StrCat(recording.problem(), ": rows[", index, "].", field, " has ", value,
                                                   " entries; the recording has ", allowed, " names"));
  };
  if (row.family() < 0 || row.family() >= recording.families_size()) {
    return absl::InvalidArgumentError(absl::StrCat(recording.problem(), ": rows[", index, "].family is ", row.family(),
                                                   "; allowed: 0 to ", recording.families_size() - 1));
  }
  const int parameters = recording.families(row.family()).parameters_size();
  if (row.values_size() != parameters) return wrong("values", row.values_size(), parameters);
  if (row.features_size() != recording.features_size()) {
    return wrong("features", row.features_size(), recording.features_size());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAreOfOne(const std::vector<v1::Recording>& recordings) {
  std::map<std::string, std::string> sources;  // of each family
  for (const v1::Recording& recording : recordings) {
    const v1::Recording& first = recordings.front();
    if (recording.device_class() != first.device_class()) {
      return absl::InvalidArgumentError(absl::StrCat(recording.problem(), " was recorded on another class of device (",
                                                     recording.device_model(), ") than ", first.problem(), " (",
                                                     first.device_model(), ")"));
    }
    if (recording.policy() != first.policy()) {
      return absl::InvalidArgumentError(
          absl::StrCat(recording.problem(), " was recorded under another policy than ", first.problem()));
    }
    for (const v1::Family& family : recording.families()) {
      const auto [it, fresh] = sources.try_emplace(family.name(), family.source_hash());
      if (it->second == family.source_hash()) continue;
      return absl::InvalidArgumentError(absl::StrCat(recording.problem(), " was recorded with other sources of ",
                                                     family.name(), " than recordings before it"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RecordedSpace> SpaceOf(const v1::Recording& recording) {
  if (const auto problem = ParseProblem(recording.problem()); !problem.ok()) return problem.status();
  RecordedSpace space;
  space.name = recording.problem();
  space.best_us = std::numeric_limits<double>::infinity();
  space.field.candidates = static_cast<size_t>(recording.rows_size());
  space.field.features = {recording.features().begin(), recording.features().end()};
  for (int i = 0; i < recording.rows_size(); ++i) {
    if (absl::Status status = CheckRow(recording, i); !status.ok()) return status;
    const v1::Row& row = recording.rows(i);
    const auto family = static_cast<size_t>(row.family());
    space.field.points.push_back(
        {family, {row.values().begin(), row.values().end()}, {row.features().begin(), row.features().end()}});
    space.field.likely.families.push_back(family);
    if (row.guess()) space.field.likely.guesses.push_back(static_cast<size_t>(i));
    space.outcomes.push_back(OutcomeOf(row));
    if (space.outcomes.back().ok) space.best_us = std::min(space.best_us, space.outcomes.back().us);
  }
  AddCodes(recording, space);
  if (space.best_us == std::numeric_limits<double>::infinity()) {
    return absl::InvalidArgumentError(absl::StrCat(recording.problem(), ": no row is OK and timed"));
  }
  return space;
}

absl::StatusOr<v1::Recording> OnlyFamily(const v1::Recording& recording, const std::string& family) {
  std::vector<std::string> names;
  for (const v1::Family& one : recording.families()) names.push_back(one.name());
  const auto found =
      family.empty() && names.size() == 1 ? names.begin() : std::find(names.begin(), names.end(), family);
  if (found == names.end()) {
    return absl::InvalidArgumentError(absl::StrCat("--family is ",
                                                   family.empty() ? "not given" : absl::StrCat("'", family, "'"), "; ",
                                                   recording.problem(), " has ", absl::StrJoin(names, ", ")));
  }
  const auto kept = static_cast<int>(found - names.begin());
  v1::Recording only = recording;
  only.clear_families();
  only.clear_rows();
  *only.add_families() = recording.families(kept);
  for (const v1::Row& row : recording.rows()) {
    if (row.family() != kept) continue;
    *only.add_rows() = row;
    only.mutable_rows()->rbegin()->set_family(0);
  }
  return only;
}

std::string VariantText(const v1::Recording& recording, const v1::Row& row) {
  const v1::Family& family = recording.families(row.family());
  std::vector<std::string> values;
  for (int i = 0; i < row.values_size(); ++i) {
    values.push_back(absl::StrCat(family.parameters(i), "=", row.values(i)));
  }
  return absl::StrCat(family.name(), ":", absl::StrJoin(values, ","));
}

search::Neighbour NeighbourOf(const RecordedSpace& space, double distance) {
  search::Neighbour neighbour;
  neighbour.distance = distance;
  for (size_t i = 0; i < space.outcomes.size(); ++i) {
    const search::Point& point = space.field.points[i];
    neighbour.rows.push_back({point.family, point.features, space.outcomes[i]});
  }
  return neighbour;
}

absl::StatusOr<v1::Recording> ReadRecording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("there is no file ", path));
  google::protobuf::io::IstreamInputStream raw(&file);
  google::protobuf::io::GzipInputStream unpacked(&raw);
  v1::Recording recording;
  if (!recording.ParseFromZeroCopyStream(&unpacked) || recording.rows_size() == 0) {
    return absl::DataLossError(absl::StrCat(path, " is no recording of a space, or damaged"));
  }
  return recording;
}

absl::StatusOr<std::vector<v1::Recording>> ReadRecordings(const std::vector<std::string>& paths) {
  std::vector<v1::Recording> recordings;
  for (const std::string& path : paths) {
    absl::StatusOr<v1::Recording> recording = ReadRecording(path);
    if (!recording.ok()) return recording.status();
    recordings.push_back(*std::move(recording));
  }
  return recordings;
}

absl::Status WriteRecording(const v1::Recording& recording, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  {
    google::protobuf::io::OstreamOutputStream raw(&file);
    google::protobuf::io::GzipOutputStream::Options options;
    options.compression_level = 9;
    google::protobuf::io::GzipOutputStream packed(&raw, options);
    recording.SerializeToZeroCopyStream(&packed);
    packed.Close();
  }
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

}  // namespace attune::replay
