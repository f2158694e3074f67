// What is known of problems: incumbents and baselines, in the store and, ready to serve, in memory.
//
// The one owner of both in a process, so that what is served is what the store has; what other processes on the same
// store have changed is read again when somebody says so. An incumbent is served on every card of its class. When the
// store cannot be read after a change, the former answer stays: the log says so, the answer itself says that it may be
// outdated, and every look-up of it tries again.
#ifndef ATTUNE_SERVER_CATALOG_RESULTS_H_
#define ATTUNE_SERVER_CATALOG_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/problem.h"
#include "server/catalog/answers/code_supply.h"
#include "server/catalog/answers/forecasts.h"
#include "server/catalog/host.h"
#include "server/catalog/result_key.h"
#include "server/space/space.h"
#include "server/store/store.h"

namespace attune::catalog {

// Thread-safe. Look-ups touch no disk unless the artifact is asked for.
class Results {
 public:
  // Reads every incumbent. All outlive it. Without a supply, answers that nobody tuned have what code there happens to
  // be; without forecasts, those that are near are what is served nearest.
  static absl::StatusOr<std::unique_ptr<Results>> Load(store::Store& store, const Host& host,
                                                       CodeSupply* supply = nullptr, Forecasts* forecasts = nullptr);
  virtual ~Results() = default;

  // EXACT or TIE; STALE; NEAREST; HEURISTIC, whichever comes first and is acceptable. NotFound when none is, with what
  // was tried. The request is valid and normalised (the service has seen to it). Of an answer whose code is COMPILING,
  // `awaited` becomes the compile key, for CodeSupply::Await; otherwise it is left alone.
  virtual absl::StatusOr<v1::GetBestResponse> GetBest(const v1::GetBestRequest& request, std::string* awaited) = 0;
  absl::StatusOr<v1::GetBestResponse> GetBest(const v1::GetBestRequest& request) {
    std::string nobody_waits;
    return GetBest(request, &nobody_waits);
  }
  // Whether there is an answer that was tuned for the key: EXACT, TIE or STALE.
  virtual bool IsTuned(const ResultKey& key) const = 0;
  // VariantsNearby (derived_answer.h), of what is served on the device's class.
  virtual std::vector<space::Variant> Nearby(const Problem& problem, const v1::Device& device, v1::Policy policy,
                                             size_t most) const = 0;
  // Grows whenever an answer may have changed: what was answered under an equal version is still the answer.
  virtual uint64_t version() const = 0;

  // The class's own incumbent as the store has it; nullopt when there is none.
  virtual absl::StatusOr<std::optional<v1::Incumbent>> Served(const ResultKey& key) = 0;
  // Serves `next.trial` from now on. Aborted when something else than `before` is served: someone was faster. Refused
  // when `write` is stale (server/store/queue.h).
  virtual absl::StatusOr<v1::Incumbent> Promote(const v1::Incumbent& next, const std::optional<v1::Incumbent>& before,
                                                const store::JobWrite& write) = 0;
  // As Store::RollBack and Store::Unpin.
  virtual absl::StatusOr<v1::Incumbent> RollBack(const ResultKey& key, absl::string_view why, absl::string_view to) = 0;
  virtual absl::StatusOr<v1::Incumbent> Unpin(const ResultKey& key) = 0;
  virtual absl::StatusOr<v1::Baseline> RecordBaseline(const v1::Baseline& baseline) = 0;
  // Trials of the problem were added: others than before may be tied with the incumbent.
  virtual void TrialsAdded(const ResultKey& key) = 0;
  // Reads everything again: what is known of devices has changed, and with it whose answer an incumbent is.
  virtual absl::Status Reload() = 0;
  // Another process has changed what is served.
  virtual void Reread(const std::vector<ResultKey>& keys) = 0;
};

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_RESULTS_H_
