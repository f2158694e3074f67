// A day of work on stores: trials, promotions, rollbacks, jobs, blobs, retention, drawn from a seed. Each operation is
// done on every store, and all must answer alike.
#ifndef ATTUNE_SERVER_STORE_COPY_TESTING_DAY_H_
#define ATTUNE_SERVER_STORE_COPY_TESTING_DAY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/store.h"

namespace attune::store::copy {

// As whom the day's jobs are leased. A store on PostgreSQL must have it as its home.
inline constexpr char kHolder[] = "day-1a2b3c4d";
inline constexpr int kProblems = 40;
std::string ProblemOfDay(int number);

class Day {
 public:
  // The stores are empty.
  Day(std::vector<Store*> stores, uint32_t seed);

  void Work(int operations);

 private:
  struct MadeTrial {
    std::string name;
    std::string problem;
    std::string device_class;
    v1::Policy policy;
    bool timed;
  };
  struct MadeJob {
    std::string name;
    std::string parent;
    int64_t epoch = 0;  // 0: not leased
  };
  using Served = std::tuple<std::string, std::string, v1::Policy>;  // problem, class, policy
  using Call = std::function<std::string(Store&)>;

  // What the stores answer, which is the same.
  std::string Ask(absl::string_view what, const Call& call);

  int Draw(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }
  bool Chance(int percent) { return Draw(100) < percent; }
  std::string Problem() { return ProblemOfDay(Draw(kProblems)); }
  v1::Policy Policy() { return Chance(70) ? v1::POLICY_HOT : v1::POLICY_COLD; }
  void SetNow(google::protobuf::Timestamp* time) const;
  JobWrite WriteOf(const MadeJob* job);

  void DoOne();
  void AppendTrial();
  void Promote();
  void RollBack();
  void Unpin();
  void Retry();
  void Report();
  void Retime();
  void RecordBaseline();
  void PutArtifact();
  void ForgetFailures();
  void Submit();
  void MoveSubmission();
  void PutBlob();
  void ReadBlob();
  void DeleteBlobs();
  void CreateJob();
  void WorkOnJob();
  void End(MadeJob job);
  void LookUp();
  void Retain();

  const std::vector<Store*> stores_;
  std::mt19937 random_;
  const absl::Time begin_;
  int done_ = 0;  // operations
  int64_t writes_ = 0;
  int made_jobs_ = 0;
  int submissions_ = 0;
  std::vector<MadeTrial> trials_;
  std::map<Served, std::vector<std::string>>
      incumbents_;  // oldest first; the last is served, unless it was rolled back
  std::map<Served, std::string> served_;
  std::vector<MadeJob> unfinished_;
};

}  // namespace attune::store::copy

#endif  // ATTUNE_SERVER_STORE_COPY_TESTING_DAY_H_
