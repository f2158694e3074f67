// What was asked for and nobody has tuned: how often, since when, and what the answer was.
//
// In memory only: a client asks again for what it still needs within minutes of a restart, so that a table on disk
// would say little more and cost a write a question. The table holds the problems asked for most recently. A call that
// is answered from kept bytes counts too, without touching the table.
#ifndef ATTUNE_SERVER_CATALOG_MISSES_H_
#define ATTUNE_SERVER_CATALOG_MISSES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/result_key.h"
#include "server/store/page.h"

namespace attune::catalog {

// One problem that was missed. Thread-safe.
class Miss {
 public:
  // One call more asked for it, at `now`: two relaxed writes. False, and nothing is counted, when the table has dropped
  // it since: Misses::Note then puts it back.
  bool Count(absl::Time now);

 private:
  friend class Misses;

  ResultKey key_;     // fixed, as the two that follow
  int64_t id_ = 0;    // in the order of their first questions
  absl::Time first_;  // question
  std::atomic<bool> listed_ = true;
  std::atomic<int64_t> count_ = 0;
  std::atomic<int64_t> last_nanos_ = 0;
  v1::Miss answered_;  // count and times left out; guarded by the table's mutex
};
using MissPtr = std::shared_ptr<Miss>;

// Thread-safe.
class Misses {
 public:
  static constexpr size_t kMost = 4096;  // of about 1 KB each

  // Whether a key has an answer that was tuned for it: such a one is no miss, or none any more.
  using Tuned = std::function<bool(const ResultKey&)>;

  explicit Misses(Tuned tuned, size_t most = kMost) : tuned_(std::move(tuned)), most_(most) {}

  // That of `key`, which `device`, one of its class, was asked about at `now`: the answer, or an error. It is yet to be
  // counted. Null when it was tuned. Where there is no room, what was tuned meanwhile goes, or else an eighth: the
  // least recently asked for, among equals the least often.
  MissPtr Note(const ResultKey& key, const v1::Device& device, const absl::StatusOr<v1::GetBestResponse>& answer,
               absl::Time now);

  // The one of a class asked for most often that is `wanted`, which must call nothing of this; nullopt when none is.
  std::optional<v1::Miss> First(absl::string_view device_class, absl::FunctionRef<bool(const v1::Miss&)> wanted);

  // Those of a class (empty: all), most often asked for first; what was tuned meanwhile is dropped. InvalidArgument for
  // a token of another listing.
  absl::StatusOr<store::Page<v1::Miss>> List(absl::string_view device_class, int page_size,
                                             absl::string_view page_token);

 private:
  struct Row {
    int64_t id = 0;
    int64_t count = 0;
    MissPtr miss;
  };
  // As List has them, all of them.
  std::vector<Row> RankedLocked(absl::string_view device_class);
  void DropTunedLocked();
  void MakeRoomLocked();

  const Tuned tuned_;
  const size_t most_;
  std::mutex mutex_;  // guards what follows
  int64_t last_id_ = 0;
  std::unordered_map<std::string, MissPtr> misses_;  // by the key's text
};

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_MISSES_H_
