#include "server/catalog/misses.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/attune/problem.h"
#include "server/base/proto_time.h"
#include "server/store/page_token.h"

namespace attune::catalog {
namespace {

// What a problem's miss says of itself, whatever the answer.
v1::Miss Asked(const ResultKey& key) {
  v1::Miss miss;
  miss.set_problem_text(key.problem_text);
  if (const absl::StatusOr<Problem> problem = ParseProblem(key.problem_text); problem.ok()) {
    *miss.mutable_problem() = ToProto(*problem);
  }
  miss.set_device_class(key.device_class);
  miss.set_policy(key.policy);
  return miss;
}

void SetAnswer(const v1::Device& device, const absl::StatusOr<v1::GetBestResponse>& answer, v1::Miss& miss) {
  miss.set_device_id(device.id());
  if (!answer.ok()) {
    miss.clear_provenance();
    miss.set_provenance_detail(std::string(answer.status().message()));
    miss.clear_variant();
    miss.clear_artifact_state();
    return;
  }
  miss.set_provenance(answer->provenance());
  miss.set_provenance_detail(answer->provenance_detail());
  *miss.mutable_variant() = answer->variant();
  miss.set_artifact_state(answer->artifact_state());
}

}  // namespace

bool Miss::Count(absl::Time now) {
  if (!listed_.load(std::memory_order_relaxed)) return false;
  count_.fetch_add(1, std::memory_order_relaxed);
  last_nanos_.store(absl::ToUnixNanos(now), std::memory_order_relaxed);
  return true;
}

MissPtr Misses::Note(const ResultKey& key, const v1::Device& device, const absl::StatusOr<v1::GetBestResponse>& answer,
                     absl::Time now) {
  if (tuned_(key)) return nullptr;
  const std::string text = ToText(key);
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = misses_.find(text);
  if (it == misses_.end()) {
    if (misses_.size() >= most_) MakeRoomLocked();
    auto miss = std::make_shared<Miss>();
    miss->key_ = key;
    miss->answered_ = Asked(key);
    miss->id_ = ++last_id_;
    miss->first_ = now;
    miss->last_nanos_ = absl::ToUnixNanos(now);
    it = misses_.emplace(text, std::move(miss)).first;
  }
  SetAnswer(device, answer, it->second->answered_);
  return it->second;
}

void Misses::MakeRoomLocked() {
  DropTunedLocked();
  if (misses_.size() < most_) return;
  std::vector<std::tuple<int64_t, int64_t, int64_t, const std::string*>> oldest;  // when last, how often, id, and key
  oldest.reserve(misses_.size());
  for (const auto& [text, miss] : misses_) oldest.emplace_back(miss->last_nanos_, miss->count_, miss->id_, &text);
  const size_t going = std::min(oldest.size(), std::max<size_t>(1, most_ / 8));
  std::partial_sort(oldest.begin(), oldest.begin() + static_cast<int64_t>(going), oldest.end());
  oldest.resize(going);
  for (const auto& [last, count, id, text] : oldest) {
    const auto it = misses_.find(*text);
    it->second->listed_ = false;
    misses_.erase(it);
  }
}

void Misses::DropTunedLocked() {
  std::erase_if(misses_, [this](const auto& one) {
    if (!tuned_(one.second->key_)) return false;
    one.second->listed_ = false;
    return true;
  });
}

std::vector<Misses::Row> Misses::RankedLocked(absl::string_view device_class) {
  DropTunedLocked();
  std::vector<Row> rows;
  for (const auto& [text, miss] : misses_) {
    if (!device_class.empty() && miss->key_.device_class != device_class) continue;
    rows.push_back({miss->id_, miss->count_, miss});
  }
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return std::pair(-a.count, a.id) < std::pair(-b.count, b.id); });
  return rows;
}

std::optional<v1::Miss> Misses::First(absl::string_view device_class, absl::FunctionRef<bool(const v1::Miss&)> wanted) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Row& row : RankedLocked(device_class)) {
    if (wanted(row.miss->answered_)) return row.miss->answered_;
  }
  return std::nullopt;
}

absl::StatusOr<store::Page<v1::Miss>> Misses::List(absl::string_view device_class, int page_size,
                                                   absl::string_view page_token) {
  const std::string listing = absl::StrCat("misses ", device_class);
  const absl::StatusOr<std::optional<store::PageKey>> after = store::DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  const auto before_page = [&after](const Row& row) {
    const double count = static_cast<double>(row.count);
    return after->has_value() && std::pair(-count, row.id) <= std::pair(-(*after)->rank, (*after)->id);
  };
  store::Page<v1::Miss> page;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Row> rows = RankedLocked(device_class);
  std::erase_if(rows, before_page);
  if (rows.size() > static_cast<size_t>(page_size)) {
    rows.resize(static_cast<size_t>(page_size));
    page.next_page_token = store::EncodePageToken(listing, {rows.back().id, static_cast<double>(rows.back().count)});
  }
  for (const Row& row : rows) {
    v1::Miss& miss = page.items.emplace_back(row.miss->answered_);
    miss.set_count(row.count);
    SetTimestamp(row.miss->first_, miss.mutable_first_time());
    SetTimestamp(absl::FromUnixNanos(row.miss->last_nanos_), miss.mutable_last_time());
  }
  return page;
}

}  // namespace attune::catalog
