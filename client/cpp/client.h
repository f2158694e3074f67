// attune's C++ client: asks a server for the best variant of a problem, and has it tuned.
//
//   auto client = attune::Client::Connect("l4:7411");
//   auto best = (*client)->GetBest({.problem = *attune::ParseProblem("b2.h8.q512.d64.f16")});
//   if (best.ok()) Launch((*best)->recipe(), (*best)->artifact());
//
// Threading: every method may be called from any thread at once. Ownership: the client owns its connection; answers
// are shared and immutable, and outlive the client.
// Errors: absl::Status with the server's code; client/cpp/status.h gives the server's reason.
// Retries: a call answered UNAVAILABLE is tried again (RetryPolicy) inside its deadline. RollBack, RecordBaseline,
// CreateBackup and CreateToken are not, because doing them twice is not doing them once; starts of work are, because
// their request_id makes them idempotent (the client chooses one when the request has none).
#ifndef ATTUNE_CLIENT_CPP_CLIENT_H_
#define ATTUNE_CLIENT_CPP_CLIENT_H_

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/access.pb.h"
#include "attune/v1/blob.pb.h"
#include "attune/v1/fleet.pb.h"
#include "attune/v1/service.pb.h"
#include "client/cpp/answer_cache.h"
#include "client/cpp/clock.h"
#include "client/cpp/retry.h"
#include "client/cpp/snapshot.h"
#include "client/cpp/tls.h"
#include "proto/attune/problem.h"

namespace attune {

struct ClientOptions {
  absl::Duration deadline = absl::Seconds(10);  // of each call, its retries included; not of Watch
  RetryPolicy retry = {};
  absl::Duration time_to_live = absl::Minutes(1);  // of a cached answer
  size_t cache_capacity = 4096;                    // answers; 0 switches the cache off
  // Answers come from this file when the server cannot be reached; empty: none. Read once, when first needed.
  std::string snapshot_path = {};
  // After a failed attempt to reach the server, answers from the cache or the snapshot are given without another
  // attempt for this long.
  absl::Duration unreachable_hold = absl::Seconds(2);
  // How long Watch tries to attach again after its stream broke: a server needs this to restart.
  absl::Duration reattach_for = absl::Minutes(2);
  // A file with a token, which every call brings: its one line is read anew for each. Never to another host in clear;
  // empty: none.
  std::string token_file = {};
  TlsOptions tls = {};  // to other hosts the connection is encrypted, and the server verified, unless it says otherwise
  const Clock* clock = Clock::Real();  // not owned; outlives the client
};

// What GetBest is asked.
struct BestQuery {
  Problem problem;
  std::string device_id = {};  // empty: the server's first device
  v1::Policy policy = v1::POLICY_HOT;
  std::vector<v1::Provenance> acceptable = {};  // empty: any
  bool include_artifact = false;
  // Asks for the ranges that the answer holds for, too (proto/attune/domain.h, RecipeAt). The cache is then not looked
  // at.
  bool include_domains = false;
  // How long to wait, at most, for code that the server is compiling (up to 60 s); the deadline begins after it.
  absl::Duration wait = absl::ZeroDuration();
  // ENERGY, EDP: what is best by that, as far as a tuning with that objective has measured it; else the fastest, and
  // provenance_detail says why.
  v1::Objective objective = v1::OBJECTIVE_TIME;
};

struct ExportSummary {
  size_t answers = 0;
  size_t devices = 0;
};

class Client {
 public:
  // `server` is "host:port" or "unix:/path". Makes no call yet: an unreachable server shows at the first one.
  // InvalidArgument when `server` is neither or of an option of TLS, FailedPrecondition when a token would cross a
  // network in clear.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(absl::string_view server, ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Cached answers cost under a microsecond; one whose code is COMPILING is asked for again. When the server cannot be
  // reached, the answer is an expired one from the cache or one from the snapshot, and its provenance_detail says so;
  // the server's error when there is none.
  absl::StatusOr<AnswerPtr> GetBest(const BestQuery& query);
  void ClearCache();

  // Saves what the server serves now (every incumbent on every device) as a snapshot file.
  absl::StatusOr<ExportSummary> ExportSnapshot(const std::string& path, bool include_artifacts);

  absl::StatusOr<v1::Operation> Tune(v1::TuneRequest request);
  absl::StatusOr<v1::Operation> Sweep(v1::SweepRequest request);
  absl::StatusOr<v1::Operation> Evaluate(v1::EvaluateVariantRequest request);
  // A kernel of one's own against a base: KEEP or REVERT (docs/submit.md).
  absl::StatusOr<v1::Operation> Submit(v1::SubmitRequest request);
  // A trial's code under Nsight Compute, or under compute-sanitizer (docs/profile.md).
  absl::StatusOr<v1::Operation> Profile(v1::ProfileRequest request);
  absl::StatusOr<v1::Operation> Sanitize(v1::SanitizeRequest request);
  absl::StatusOr<v1::Submission> GetSubmission(const std::string& submission);
  absl::StatusOr<v1::ListSubmissionsResponse> ListSubmissions(const v1::ListSubmissionsRequest& request);
  absl::StatusOr<v1::Submission> Adopt(const std::string& submission);
  absl::StatusOr<v1::Submission> Withdraw(const std::string& submission);
  // What Sweep would do; starts nothing.
  absl::StatusOr<v1::PlanSweepResponse> PlanSweep(const v1::SweepRequest& request);

  // Calls `on_change` on the calling thread with the operation's state at once and after each change, and returns the
  // last one once it is done. When the stream breaks with UNAVAILABLE, calls `on_break` with why and attaches again
  // (ClientOptions::reattach_for). A request to stop ends it with Cancelled; the operation itself goes on.
  absl::StatusOr<v1::Operation> Watch(const std::string& operation,
                                      const std::function<void(const v1::Operation&)>& on_change,
                                      const std::stop_token& stop = {},
                                      const std::function<void(const absl::Status&)>& on_break = {});
  absl::StatusOr<v1::Operation> GetOperation(const std::string& operation);
  absl::StatusOr<v1::Operation> Cancel(const std::string& operation);
  absl::StatusOr<v1::ListOperationsResponse> ListOperations(const v1::ListOperationsRequest& request);

  absl::StatusOr<v1::Trial> GetTrial(const std::string& trial);
  absl::StatusOr<v1::ListTrialsResponse> ListTrials(const v1::ListTrialsRequest& request);
  absl::StatusOr<v1::RetryTrialsResponse> RetryTrials(const v1::RetryTrialsRequest& request);
  absl::StatusOr<v1::ListIncumbentsResponse> ListIncumbents(const v1::ListIncumbentsRequest& request);
  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request);
  absl::StatusOr<v1::Incumbent> RollBack(const v1::RollBackRequest& request);
  absl::StatusOr<v1::Incumbent> Unpin(const v1::UnpinRequest& request);
  absl::StatusOr<v1::Baseline> RecordBaseline(const v1::RecordBaselineRequest& request);
  absl::StatusOr<v1::ListBaselinesResponse> ListBaselines(const v1::ListBaselinesRequest& request);
  absl::StatusOr<v1::ListRetimingsResponse> ListRetimings(const v1::ListRetimingsRequest& request);
  absl::StatusOr<v1::ListTrendsResponse> ListTrends(const v1::ListTrendsRequest& request);
  absl::StatusOr<v1::CompareTimesResponse> CompareTimes(const v1::CompareTimesRequest& request);
  absl::StatusOr<v1::ListMissesResponse> ListMisses(const v1::ListMissesRequest& request);

  absl::StatusOr<v1::ListKernelFamiliesResponse> ListKernelFamilies();
  absl::StatusOr<v1::ListDevicesResponse> ListDevices();
  absl::StatusOr<v1::PreflightResponse> Preflight(const v1::PreflightRequest& request);
  absl::Status Ping();

  // Makes a backup on the server's host; waits up to kBackupDeadline for it (or the options' deadline, when longer). A
  // call that ran out of time leaves a backup all the same once it is made.
  static constexpr absl::Duration kBackupDeadline = absl::Minutes(10);
  absl::StatusOr<v1::Backup> CreateBackup(const v1::CreateBackupRequest& request);
  absl::StatusOr<v1::ListBackupsResponse> ListBackups(const v1::ListBackupsRequest& request);

  // What other programs' caches keep on the server (docs/access.md).
  absl::StatusOr<v1::ListBlobsResponse> ListBlobs(const v1::ListBlobsRequest& request);
  absl::StatusOr<v1::DeleteBlobsResponse> DeleteBlobs(const v1::DeleteBlobsRequest& request);

  // The hosts that share the server's store (docs/fleet.md), by their names, "hosts/...".
  absl::StatusOr<v1::ListHostsResponse> ListHosts();
  absl::StatusOr<v1::Host> DrainHost(absl::string_view name);
  absl::StatusOr<v1::Host> UndrainHost(absl::string_view name);
  absl::StatusOr<v1::Host> ForgetHost(absl::string_view name);

  // Whom the server takes this client to be, and its quotas (docs/access.md).
  absl::StatusOr<v1::Caller> GetCaller();
  // Administration of access.
  absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::CreateTokenRequest& request);
  absl::StatusOr<v1::ListTokensResponse> ListTokens();
  absl::StatusOr<v1::Token> RevokeToken(const v1::RevokeTokenRequest& request);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_CLIENT_H_
