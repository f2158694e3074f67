// A server with canned answers, in the process, for tests of what talks to one.
#ifndef ATTUNE_CLIENT_TESTING_FAKE_ATTUNE_H_
#define ATTUNE_CLIENT_TESTING_FAKE_ATTUNE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "attune/v1/service.grpc.pb.h"

namespace attune::testing {

// Errors as the real server sends them, with a google.rpc.ErrorInfo.
grpc::Status RichError(grpc::StatusCode code, const std::string& message, const std::string& reason,
                       const std::map<std::string, std::string>& metadata = {});

// One problem, b2.h8.q512.d64.f16, is tuned on cuda:0: trial 1 is its incumbent, trial 2 gave wrong results. Everything
// else is NOT_FOUND. Thread-safe.
class FakeAttune : public v1::AttuneService::Service {
 public:
  static constexpr char kProblem[] = "b2.h8.q512.d64.f16";
  static constexpr char kVariant[] = "attention_wmma:BLOCK_M=64,KV_SPLITS=4";
  static constexpr char kLeastEnergy[] = "attention_simt:BLOCK_M=32";  // of HasAnAlternative

  // The next calls, whatever their method, are answered with this.
  void FailNext(int calls, grpc::Status status);
  int calls(const std::string& method) const;
  v1::TuneRequest last_tune() const;
  v1::SweepRequest last_sweep() const;
  v1::ListTrialsRequest last_list_trials() const;
  v1::EvaluateVariantRequest last_evaluate() const;
  v1::SubmitRequest last_submit() const;
  v1::ExplainRequest last_explain() const;
  v1::ProfileRequest last_profile() const;
  v1::SanitizeRequest last_sanitize() const;
  v1::ListOperationsRequest last_list_operations() const;
  v1::RollBackRequest last_roll_back() const;
  v1::RetryTrialsRequest last_retry() const;
  // What the last watch brought for its authorization; empty: nothing.
  std::string authorization() const;

  // What ListTrials lists from now on, of the problem and with the verdicts that are asked for.
  void HasTrials(std::vector<v1::Trial> trials);
  // GetTrial has counters from now on.
  void HasProfiles();
  // What the operation of the next Tune, Sweep or EvaluateVariant ends with; it starts out running.
  void EndsWith(v1::Operation done);
  // The one operation there is, beside the tuning that has ended.
  void HasOperation(v1::Operation operation);
  // From now on an operation that is cancelled is still running in the answer, as one in the middle of a trial is.
  void CancelsLater();
  // Of GetBest from now on; `median_us` 0: the canned trial's.
  void Answers(v1::Provenance provenance, const std::string& detail, double median_us = 0);
  // Of the code of the next answers of GetBest, in turn; the last one stays.
  void HasCode(std::vector<v1::ArtifactState> states);
  v1::GetBestRequest last_get_best() const;
  // Answers are of a pinned variant, until Unpin.
  void Pins();
  // Another variant takes least energy: the answer to who asks for that, and the incumbent's alternative.
  void HasAnAlternative();
  // The incumbent of ListIncumbents was timed by the card of this UUID.
  void TimedBy(const std::string& uuid);
  // It is a gateway from now on.
  void HasNoDevice() { has_device_ = false; }
  // The next watch streams break with UNAVAILABLE after their first message.
  void BreakWatches(int streams);
  // Watches send the running state, call `on_watch` and then wait until the operation is cancelled or the call is.
  void HoldWatches(std::function<void()> on_watch);

  grpc::Status GetBest(grpc::ServerContext*, const v1::GetBestRequest*, v1::GetBestResponse*) override;
  grpc::Status Tune(grpc::ServerContext*, const v1::TuneRequest*, v1::Operation*) override;
  grpc::Status Sweep(grpc::ServerContext*, const v1::SweepRequest*, v1::Operation*) override;
  grpc::Status PlanSweep(grpc::ServerContext*, const v1::SweepRequest*, v1::PlanSweepResponse*) override;
  grpc::Status EvaluateVariant(grpc::ServerContext*, const v1::EvaluateVariantRequest*, v1::Operation*) override;
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest*, v1::Operation*) override;
  grpc::Status Profile(grpc::ServerContext*, const v1::ProfileRequest*, v1::Operation*) override;
  grpc::Status Sanitize(grpc::ServerContext*, const v1::SanitizeRequest*, v1::Operation*) override;
  grpc::Status GetSubmission(grpc::ServerContext*, const v1::GetSubmissionRequest*, v1::Submission*) override;
  grpc::Status ListSubmissions(grpc::ServerContext*, const v1::ListSubmissionsRequest*,
                               v1::ListSubmissionsResponse*) override;
  grpc::Status AdoptSubmission(grpc::ServerContext*, const v1::AdoptSubmissionRequest*, v1::Submission*) override;
  grpc::Status WithdrawSubmission(grpc::ServerContext*, const v1::WithdrawSubmissionRequest*, v1::Submission*) override;
  grpc::Status GetOperation(grpc::ServerContext*, const v1::GetOperationRequest*, v1::Operation*) override;
  grpc::Status WatchOperation(grpc::ServerContext*, const v1::WatchOperationRequest*,
                              grpc::ServerWriter<v1::Operation>*) override;
  grpc::Status ListOperations(grpc::ServerContext*, const v1::ListOperationsRequest*,
                              v1::ListOperationsResponse*) override;
  grpc::Status CancelOperation(grpc::ServerContext*, const v1::CancelOperationRequest*, v1::Operation*) override;
  grpc::Status GetTrial(grpc::ServerContext*, const v1::GetTrialRequest*, v1::Trial*) override;
  grpc::Status ListTrials(grpc::ServerContext*, const v1::ListTrialsRequest*, v1::ListTrialsResponse*) override;
  grpc::Status RetryTrials(grpc::ServerContext*, const v1::RetryTrialsRequest*, v1::RetryTrialsResponse*) override;
  grpc::Status ListIncumbents(grpc::ServerContext*, const v1::ListIncumbentsRequest*,
                              v1::ListIncumbentsResponse*) override;
  grpc::Status Explain(grpc::ServerContext*, const v1::ExplainRequest*, v1::ExplainResponse*) override;
  grpc::Status RollBack(grpc::ServerContext*, const v1::RollBackRequest*, v1::Incumbent*) override;
  grpc::Status Unpin(grpc::ServerContext*, const v1::UnpinRequest*, v1::Incumbent*) override;
  grpc::Status RecordBaseline(grpc::ServerContext*, const v1::RecordBaselineRequest*, v1::Baseline*) override;
  grpc::Status ListBaselines(grpc::ServerContext*, const v1::ListBaselinesRequest*,
                             v1::ListBaselinesResponse*) override;
  grpc::Status ListRetimings(grpc::ServerContext*, const v1::ListRetimingsRequest*,
                             v1::ListRetimingsResponse*) override;
  grpc::Status ListTrends(grpc::ServerContext*, const v1::ListTrendsRequest*, v1::ListTrendsResponse*) override;
  grpc::Status CompareTimes(grpc::ServerContext*, const v1::CompareTimesRequest*, v1::CompareTimesResponse*) override;
  grpc::Status ListMisses(grpc::ServerContext*, const v1::ListMissesRequest*, v1::ListMissesResponse*) override;
  grpc::Status CreateBackup(grpc::ServerContext*, const v1::CreateBackupRequest*, v1::Backup*) override;
  grpc::Status ListBackups(grpc::ServerContext*, const v1::ListBackupsRequest*, v1::ListBackupsResponse*) override;
  grpc::Status ListKernelFamilies(grpc::ServerContext*, const v1::ListKernelFamiliesRequest*,
                                  v1::ListKernelFamiliesResponse*) override;
  grpc::Status ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest*, v1::ListDevicesResponse*) override;
  grpc::Status Preflight(grpc::ServerContext*, const v1::PreflightRequest*, v1::PreflightResponse*) override;
  grpc::Status Ping(grpc::ServerContext*, const v1::PingRequest*, v1::PingResponse*) override;

 private:
  // Counts the call, and gives the failure that FailNext planned for it.
  grpc::Status Enter(const std::string& method);
  grpc::Status Start(const std::string& title, v1::Operation* operation);

  mutable std::mutex mutex_;  // guards what follows
  int failures_ = 0;
  grpc::Status failure_;
  std::map<std::string, int> calls_;
  v1::TuneRequest last_tune_;
  v1::SweepRequest last_sweep_;
  v1::ListTrialsRequest last_list_trials_;
  v1::EvaluateVariantRequest last_evaluate_;
  v1::SubmitRequest last_submit_;
  bool has_profiles_ = false;
  v1::ExplainRequest last_explain_;
  v1::ProfileRequest last_profile_;
  v1::SanitizeRequest last_sanitize_;
  v1::ListOperationsRequest last_list_operations_;
  v1::RollBackRequest last_roll_back_;
  v1::RetryTrialsRequest last_retry_;
  std::optional<std::vector<v1::Trial>> trials_;
  std::string authorization_;
  v1::Operation operation_;          // the one there is
  std::condition_variable changed_;  // of operation_
  v1::Operation ends_with_;
  bool cancels_later_ = false;
  v1::Provenance provenance_ = v1::PROVENANCE_EXACT;
  std::string provenance_detail_;
  double median_us_ = 0;  // 0: the canned trial's
  bool pinned_ = false;
  std::string timed_by_;
  std::atomic<bool> has_device_ = true;
  bool alternative_ = false;
  std::deque<v1::ArtifactState> code_ = {v1::ARTIFACT_STATE_READY};
  v1::GetBestRequest last_get_best_;
  int broken_watches_ = 0;
  std::function<void()> on_watch_;
};

// The canned values themselves, to compare with.
v1::Trial CannedTrial(int number);
v1::Operation SucceededTuning();
v1::Operation EndedSweep(bool regression);
v1::Operation EndedEvaluation(v1::EvaluateResult::Decision decision);
v1::Operation EndedSubmission(v1::SubmitResult::Decision decision);
v1::Profile CannedProfile();
v1::Operation EndedProfile();
v1::Operation EndedSanitizing(bool clean);
v1::Submission CannedSubmission(int number);

// Serves `service` on a free port of the loopback, or on a Unix socket, while it lives. `service` must outlive it.
class RunningServer {
 public:
  // `other`: a second one; null: none.
  explicit RunningServer(
      grpc::Service* service, const std::string& address = "127.0.0.1:0", grpc::Service* other = nullptr,
      const std::shared_ptr<grpc::ServerCredentials>& credentials = grpc::InsecureServerCredentials());
  ~RunningServer();
  const std::string& address() const { return address_; }

 private:
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace attune::testing

#endif  // ATTUNE_CLIENT_TESTING_FAKE_ATTUNE_H_
