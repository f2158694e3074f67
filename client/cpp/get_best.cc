// Client::GetBest: the cache first, then the server, then what is left when there is no server.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/client_impl.h"
#include "google/protobuf/util/time_util.h"
#include "proto/attune/objective.h"

namespace attune {
namespace {

AnswerKeyView KeyOf(const BestQuery& query) {
  return {query.problem, query.device_id, query.policy, UnlessTime(query.objective)};
}

bool Accepts(const BestQuery& query, const v1::GetBestResponse& answer) {
  return query.acceptable.empty() ||
         std::find(query.acceptable.begin(), query.acceptable.end(), answer.provenance()) != query.acceptable.end();
}

v1::GetBestRequest ToRequest(const BestQuery& query) {
  v1::GetBestRequest request;
  *request.mutable_problem() = ToProto(query.problem);
  request.set_device_id(query.device_id);
  request.set_policy(query.policy);
  for (const v1::Provenance provenance : query.acceptable) request.add_acceptable(provenance);
  request.set_include_artifact(query.include_artifact);
  request.set_include_domains(query.include_domains);
  request.set_objective(KeyOf(query).objective);
  if (query.wait > absl::ZeroDuration()) {
    *request.mutable_wait() =
        google::protobuf::util::TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(query.wait));
  }
  return request;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Snapshot>> Client::Impl::LoadedSnapshot() {
  const std::lock_guard lock(mutex);
  if (!snapshot.has_value()) snapshot = Snapshot::Load(options.snapshot_path);
  return *snapshot;
}

absl::StatusOr<AnswerPtr> Client::Impl::Fallback(const BestQuery& query, const absl::Status& error) {
  const AnswerCache::Entry expired = cache.FindEvenExpired(KeyOf(query));
  if (expired.answer != nullptr && Accepts(query, *expired.answer) &&
      (expired.with_artifact || !query.include_artifact)) {
    auto answer = std::make_shared<v1::GetBestResponse>(*expired.answer);
    answer->set_provenance_detail(absl::StrCat(
        answer->provenance_detail(), answer->provenance_detail().empty() ? "" : "; ", "the server's answer of ",
        absl::FormatTime("%Y-%m-%d %H:%M UTC", expired.fetched, absl::UTCTimeZone())));
    return answer;
  }
  if (options.snapshot_path.empty()) return error;
  const auto loaded = LoadedSnapshot();
  if (!loaded.ok()) {
    if (absl::IsNotFound(loaded.status())) return error;
    return absl::Status(error.code(), absl::StrCat(error.message(), "; ", loaded.status().message()));
  }
  AnswerPtr answer = (*loaded)->Find(KeyOf(query));
  if (answer == nullptr || !Accepts(query, *answer)) {
    return absl::Status(error.code(), absl::StrCat(error.message(), "; the snapshot '", options.snapshot_path,
                                                   "' has no answer for ", ToText(query.problem)));
  }
  return answer;
}

absl::StatusOr<AnswerPtr> Client::GetBest(const BestQuery& query) {
  const absl::Time now = impl_->options.clock->Now();
  if (AnswerPtr hit = impl_->cache.Find(KeyOf(query), query.include_artifact, now);
      hit != nullptr && Accepts(query, *hit) && !query.include_domains) {
    return hit;
  }
  absl::Status held;
  {
    const std::lock_guard lock(impl_->mutex);
    if (now < impl_->unreachable_until) held = impl_->unreachable;
  }
  if (!held.ok()) return impl_->Fallback(query, held);

  absl::StatusOr<v1::GetBestResponse> fetched =
      impl_->Call(&Connection::Stub::GetBest, ToRequest(query), Retry::kOnUnavailable, query.wait);
  if (fetched.ok()) {
    auto answer = std::make_shared<const v1::GetBestResponse>(*std::move(fetched));
    // An answer to a narrower question is not the best one for everybody.
    if (query.acceptable.empty()) {
      const absl::Time arrived = impl_->options.clock->Now();
      // What is being compiled is asked for again; it is kept for when nobody answers.
      const bool compiling = answer->artifact_state() == v1::ARTIFACT_STATE_COMPILING;
      const absl::Time expires = compiling ? arrived : arrived + impl_->options.time_to_live;
      impl_->cache.Put(KeyOf(query), {answer, query.include_artifact, arrived, expires});
    }
    return answer;
  }
  if (!IsUnreachable(fetched.status())) return fetched.status();
  absl::StatusOr<AnswerPtr> fallback = impl_->Fallback(query, fetched.status());
  if (fallback.ok()) {
    const std::lock_guard lock(impl_->mutex);
    impl_->unreachable = fetched.status();
    impl_->unreachable_until = impl_->options.clock->Now() + impl_->options.unreachable_hold;
  }
  return fallback;
}

void Client::ClearCache() { impl_->cache.Clear(); }

}  // namespace attune
