// What a FakeStore holds, and what outlives it.
#ifndef ATTUNE_SERVER_STORE_TESTING_FAKE_STORE_STATE_H_
#define ATTUNE_SERVER_STORE_TESTING_FAKE_STORE_STATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "server/store/hosts_in_memory.h"
#include "server/store/testing/fake_store.h"

namespace attune::store {
namespace fake {

struct StoredTrial {
  int64_t id = 0;
  v1::Trial trial;
  bool retry = false;  // does not keep its variant from being tried again
};

struct StoredIncumbent {
  int64_t id = 0;
  v1::Incumbent incumbent;
  bool served = true;
};

struct StoredBaseline {
  int64_t id = 0;
  v1::Baseline baseline;
};

// "": whatever it is.
template <typename T>
bool FitsText(const std::string& wanted, const T& text) {
  return wanted.empty() || wanted == text;
}

inline google::protobuf::Timestamp Now() {
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(absl::Now()));
}

}  // namespace fake

struct FakeStore::State {
  explicit State(const std::function<absl::Time()>& now) : queue(now), hosts(now) { queue.SetHosts(&hosts); }

  FakeQueue queue;      // locks for itself
  HostsInMemory hosts;  // likewise
  FakeBlobs blobs;      // likewise
  std::mutex mutex;
  absl::Status append;
  absl::Status read;
  std::vector<fake::StoredTrial> trials;
  std::map<std::string, v1::Trial> reports;     // by trial: what tools say of it, and no more
  std::map<std::string, v1::Variant> variants;  // by text: as the first trial had it
  std::vector<fake::StoredIncumbent> incumbents;
  std::map<std::pair<std::string, std::string>, CompiledArtifact> artifacts;
  std::map<std::string, std::string> files;
  std::vector<fake::StoredBaseline> baselines;
  std::vector<v1::Retiming> retimings;
  std::map<int64_t, v1::Submission> submissions;
  int64_t last_submission = 0;

  const fake::StoredTrial* Find(absl::string_view name) const;
  // Those of any card that were not LOST, oldest first, by variant and source hash; the dependencies' own is ignored.
  std::map<std::string, std::vector<const fake::StoredTrial*>> ByVariant(absl::string_view problem_text,
                                                                         v1::Policy policy,
                                                                         const v1::Dependencies& dependencies) const;
  fake::StoredIncumbent* Served(absl::string_view problem_text, absl::string_view device_class, v1::Policy policy);
  // The name of the one made.
  absl::StatusOr<std::string> MakeServed(const v1::Incumbent& incumbent, absl::string_view expected_previous);
  fake::StoredIncumbent* Named(absl::string_view name);
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_FAKE_STORE_STATE_H_
