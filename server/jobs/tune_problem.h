// Tuning one problem on one device: the whole loop, for a tune job and for each problem of a sweep.
#ifndef ATTUNE_SERVER_JOBS_TUNE_PROBLEM_H_
#define ATTUNE_SERVER_JOBS_TUNE_PROBLEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/results.h"
#include "server/forecast/class_model.h"
#include "server/promotion/contest.h"
#include "server/search/search_spec.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"
#include "server/trials/reference.h"
#include "server/trials/sister_cards.h"
#include "server/trials/trial_phase.h"

namespace attune::jobs {

struct TuneOutcome {
  v1::TuneResult result;
  int64_t trials = 0;  // run now, not those reused
  int64_t compiles = 0;
};

// Tunes for all jobs. Thread-safe; what it is given outlives it.
class ProblemTuner {
 public:
  struct Options {
    catalog::Results& results;
    const trials::Families& families;
    const trials::TrialPhase::Means& means;
    const promotion::Contests& contests;
    forecast::Models* models = nullptr;  // null: searches know of other problems what is near
  };
  explicit ProblemTuner(const Options& options) : options_(options) {}

  // Cancelled when the job was asked to stop. A search that learns begins with what SeedsFor says, unless it is told
  // where to look. `rules`: of the contest that decides. `sisters`: cards that share the trials; the rest is on
  // the slot's card, or where that is lost, on the first that is left.
  absl::StatusOr<TuneOutcome> Tune(search::SearchSpec spec, trials::DeviceSlot& slot, const trials::Job& job,
                                   const promotion::ContestRules& rules = {},
                                   const std::vector<trials::Sister>& sisters = {}) const;
  // Where a small search begins: what near problems are served now, and what is expected to be the fastest
  // (search::SeedsOf).
  std::vector<space::Variant> SeedsFor(const catalog::TuningKey& tuning_key) const;
  // What another problem is served, and its fastest trials on this class, as far as they are feasible here; a few.
  // NotFound when none of its trials is OK.
  absl::StatusOr<std::vector<space::Variant>> SeedsFrom(const std::string& problem_text,
                                                        const catalog::TuningKey& tuning_key) const;

 private:
  std::vector<space::Variant> FeasibleHere(const std::vector<std::string>& texts,
                                           const catalog::TuningKey& tuning_key) const;
  // What was tuned says of such a problem; null where it says nothing.
  std::shared_ptr<const forecast::ClassModel> ModelFor(const catalog::TuningKey& tuning_key) const;
  // `model` may be null, here and below.
  std::vector<space::Variant> SeedsFor(const catalog::TuningKey& tuning_key, const forecast::ClassModel* model) const;
  absl::StatusOr<search::Field> FieldOf(const search::SearchSpec& spec, const search::CandidateSet& candidates,
                                        const forecast::ClassModel* model, const trials::Job& job) const;
  absl::StatusOr<std::unique_ptr<trials::DeviceUse>> TakeCard(trials::DeviceSlot& slot,
                                                              const catalog::TuningKey& tuning_key,
                                                              const trials::Job& job, trials::TrialPhase* joins,
                                                              double& floor_us) const;

  const Options options_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_TUNE_PROBLEM_H_
