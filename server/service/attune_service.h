// The public API: validates a request, hands it to the tuner, the catalog or the store, and translates the answer.
#ifndef ATTUNE_SERVER_SERVICE_ATTUNE_SERVICE_H_
#define ATTUNE_SERVER_SERVICE_ATTUNE_SERVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "attune/v1/service.grpc.pb.h"
#include "server/access/method.h"
#include "server/catalog/answers/code_supply.h"
#include "server/catalog/host.h"
#include "server/catalog/misses.h"
#include "server/catalog/results.h"
#include "server/jobs/tuner.h"
#include "server/metrics/answers.h"
#include "server/service/executor.h"
#include "server/service/response_cache.h"
#include "server/service/validate.h"
#include "server/store/backups.h"
#include "server/store/store.h"
#include "server/submit/submissions.h"

namespace attune::service {

struct ServiceOptions {
  // All live longer than the service.
  jobs::Tuner* tuner = nullptr;
  catalog::Results* results = nullptr;
  catalog::CodeSupply* supply = nullptr;  // that of `results`; null: none
  catalog::Misses* misses = nullptr;      // null: misses are not counted
  store::Store* store = nullptr;
  store::Backups* backups = nullptr;
  submit::Submissions* submissions = nullptr;
  const catalog::Host* host = nullptr;
  metrics::Answers* answers = nullptr;  // counts those of GetBest
  std::string version;
  std::vector<std::string> warnings = {};  // of this host, to whoever asks what a tuning would do
};

// GetBest and Ping answer on gRPC's thread; everything that may touch the disk runs on the executor. GetBest sees its
// request as bytes, so that a repeated one is neither parsed nor answered anew.
class AttuneServiceImpl final
    : public v1::AttuneService::WithRawCallbackMethod_GetBest<v1::AttuneService::CallbackService> {
 public:
  explicit AttuneServiceImpl(ServiceOptions options);

  grpc::ServerUnaryReactor* GetBest(grpc::CallbackServerContext*, const grpc::ByteBuffer*, grpc::ByteBuffer*) override;
  grpc::ServerUnaryReactor* Tune(grpc::CallbackServerContext*, const v1::TuneRequest*, v1::Operation*) override;
  grpc::ServerUnaryReactor* Sweep(grpc::CallbackServerContext*, const v1::SweepRequest*, v1::Operation*) override;
  grpc::ServerUnaryReactor* PlanSweep(grpc::CallbackServerContext*, const v1::SweepRequest*,
                                      v1::PlanSweepResponse*) override;
  grpc::ServerUnaryReactor* EvaluateVariant(grpc::CallbackServerContext*, const v1::EvaluateVariantRequest*,
                                            v1::Operation*) override;
  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext*, const v1::SubmitRequest*, v1::Operation*) override;
  grpc::ServerUnaryReactor* GetSubmission(grpc::CallbackServerContext*, const v1::GetSubmissionRequest*,
                                          v1::Submission*) override;
  grpc::ServerUnaryReactor* ListSubmissions(grpc::CallbackServerContext*, const v1::ListSubmissionsRequest*,
                                            v1::ListSubmissionsResponse*) override;
  grpc::ServerUnaryReactor* AdoptSubmission(grpc::CallbackServerContext*, const v1::AdoptSubmissionRequest*,
                                            v1::Submission*) override;
  grpc::ServerUnaryReactor* WithdrawSubmission(grpc::CallbackServerContext*, const v1::WithdrawSubmissionRequest*,
                                               v1::Submission*) override;
  grpc::ServerUnaryReactor* Profile(grpc::CallbackServerContext*, const v1::ProfileRequest*, v1::Operation*) override;
  grpc::ServerUnaryReactor* Sanitize(grpc::CallbackServerContext*, const v1::SanitizeRequest*, v1::Operation*) override;
  grpc::ServerUnaryReactor* GetOperation(grpc::CallbackServerContext*, const v1::GetOperationRequest*,
                                         v1::Operation*) override;
  grpc::ServerWriteReactor<v1::Operation>* WatchOperation(grpc::CallbackServerContext*,
                                                          const v1::WatchOperationRequest*) override;
  grpc::ServerUnaryReactor* ListOperations(grpc::CallbackServerContext*, const v1::ListOperationsRequest*,
                                           v1::ListOperationsResponse*) override;
  grpc::ServerUnaryReactor* CancelOperation(grpc::CallbackServerContext*, const v1::CancelOperationRequest*,
                                            v1::Operation*) override;
  grpc::ServerUnaryReactor* GetTrial(grpc::CallbackServerContext*, const v1::GetTrialRequest*, v1::Trial*) override;
  grpc::ServerUnaryReactor* ListTrials(grpc::CallbackServerContext*, const v1::ListTrialsRequest*,
                                       v1::ListTrialsResponse*) override;
  grpc::ServerUnaryReactor* ListIncumbents(grpc::CallbackServerContext*, const v1::ListIncumbentsRequest*,
                                           v1::ListIncumbentsResponse*) override;
  grpc::ServerUnaryReactor* ListRetimings(grpc::CallbackServerContext*, const v1::ListRetimingsRequest*,
                                          v1::ListRetimingsResponse*) override;
  grpc::ServerUnaryReactor* ListTrends(grpc::CallbackServerContext*, const v1::ListTrendsRequest*,
                                       v1::ListTrendsResponse*) override;
  grpc::ServerUnaryReactor* CompareTimes(grpc::CallbackServerContext*, const v1::CompareTimesRequest*,
                                         v1::CompareTimesResponse*) override;
  grpc::ServerUnaryReactor* RetryTrials(grpc::CallbackServerContext*, const v1::RetryTrialsRequest*,
                                        v1::RetryTrialsResponse*) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext*, const v1::ExplainRequest*,
                                    v1::ExplainResponse*) override;
  grpc::ServerUnaryReactor* RollBack(grpc::CallbackServerContext*, const v1::RollBackRequest*, v1::Incumbent*) override;
  grpc::ServerUnaryReactor* Unpin(grpc::CallbackServerContext*, const v1::UnpinRequest*, v1::Incumbent*) override;
  grpc::ServerUnaryReactor* RecordBaseline(grpc::CallbackServerContext*, const v1::RecordBaselineRequest*,
                                           v1::Baseline*) override;
  grpc::ServerUnaryReactor* ListBaselines(grpc::CallbackServerContext*, const v1::ListBaselinesRequest*,
                                          v1::ListBaselinesResponse*) override;
  grpc::ServerUnaryReactor* ListMisses(grpc::CallbackServerContext*, const v1::ListMissesRequest*,
                                       v1::ListMissesResponse*) override;
  grpc::ServerUnaryReactor* ListKernelFamilies(grpc::CallbackServerContext*, const v1::ListKernelFamiliesRequest*,
                                               v1::ListKernelFamiliesResponse*) override;
  grpc::ServerUnaryReactor* ListDevices(grpc::CallbackServerContext*, const v1::ListDevicesRequest*,
                                        v1::ListDevicesResponse*) override;
  grpc::ServerUnaryReactor* Preflight(grpc::CallbackServerContext*, const v1::PreflightRequest*,
                                      v1::PreflightResponse*) override;
  grpc::ServerUnaryReactor* CreateBackup(grpc::CallbackServerContext*, const v1::CreateBackupRequest*,
                                         v1::Backup*) override;
  grpc::ServerUnaryReactor* ListBackups(grpc::CallbackServerContext*, const v1::ListBackupsRequest*,
                                        v1::ListBackupsResponse*) override;
  grpc::ServerUnaryReactor* Ping(grpc::CallbackServerContext*, const v1::PingRequest*, v1::PingResponse*) override;

 private:
  // Runs `work` on an executor (null: the common one), unless the caller may not make the call or the request is beyond
  // its limits, and finishes the call with its status. Request and response live until then.
  grpc::ServerUnaryReactor* Later(grpc::CallbackServerContext* context, access::MethodRow method,
                                  const google::protobuf::Message& request, std::function<absl::Status()> work,
                                  Executor* executor = nullptr);

  // A look-up that may wait for code; its call ends when it is answered.
  struct Question;
  // Answers it, or has it answered again when what it waits for is there.
  void Give(std::shared_ptr<Question> question);
  // The same, on another thread.
  void Run(std::shared_ptr<Question> question);

  // The answer to one request, which came as `bytes`; answers to plain ones are kept. No bytes: not to be kept.
  // `awaited`: as Results::GetBest has it. `again`: the call was answered, and so counted, before.
  absl::Status Answer(const v1::GetBestRequest& request, std::string_view bytes, grpc::ByteBuffer* response,
                      std::string* awaited, bool again = false);
  // That of a valid request; null when there is an answer that was tuned for it, or no device to have one.
  catalog::MissPtr MissOf(const v1::GetBestRequest& request, const absl::StatusOr<v1::GetBestResponse>& answer,
                          bool again);

  ServiceOptions options_;
  ResponseCache answers_;
  Executor executor_;
  Executor ranging_;
  Executor writing_;
  Executor heavy_;
  Executor history_;
  Executor copying_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_ATTUNE_SERVICE_H_
