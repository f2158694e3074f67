// The store in memory, for tests: what store.h says, without a disk. It passes the contract tests (store_contract.h).
#ifndef ATTUNE_SERVER_STORE_TESTING_FAKE_STORE_H_
#define ATTUNE_SERVER_STORE_TESTING_FAKE_STORE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/store/store.h"
#include "server/store/testing/fake_blobs.h"
#include "server/store/testing/fake_queue.h"

namespace attune::store {

class FakeStore : public Store {
 public:
  // What outlives a FakeStore, as files outlive a real one.
  struct State;

  FakeStore();
  explicit FakeStore(std::shared_ptr<State> state) : state_(std::move(state)) {}
  static std::shared_ptr<State> MakeState(std::function<absl::Time()> now = absl::Now);  // `now` is that of leases

  // The tests' own view and influence.
  std::vector<v1::Trial> trials() const;
  void FailAppends(absl::Status status);
  void FailReads(absl::Status status);  // of the served incumbent, known trials and compiled code
  void LoseArtifactFiles();
  void LoseArtifact(const std::string& sha256);  // as when somebody removes the file

  absl::StatusOr<std::string> AppendTrial(const v1::Trial& trial, const JobWrite& write) override;
  absl::StatusOr<v1::Trial> GetTrial(absl::string_view name) override;
  absl::Status RecordProfile(absl::string_view trial, const v1::Profile& profile, const JobWrite& write) override;
  absl::Status RecordSanitizing(absl::string_view trial, const v1::Sanitizing& sanitizing,
                                const JobWrite& write) override;
  absl::StatusOr<v1::Trial> FindTrial(const TrialKey& key) override;
  absl::StatusOr<std::vector<v1::Trial>> KnownTrials(absl::string_view problem_text, const Instance& device,
                                                     v1::Policy policy, const v1::Dependencies& dependencies) override;
  absl::StatusOr<std::vector<v1::Trial>> PriorTrials(absl::string_view problem_text, const Instance& device,
                                                     v1::Policy policy, const v1::Dependencies& dependencies,
                                                     int most) override;
  absl::StatusOr<Page<v1::Trial>> ListTrials(const v1::TrialFilter& filter, v1::ListTrialsRequest::Order order,
                                             int page_size, absl::string_view page_token) override;
  absl::StatusOr<Retried> RetryTrials(const v1::TrialFilter& filter) override;

  absl::StatusOr<v1::Incumbent> Promote(const v1::Incumbent& incumbent, absl::string_view expected_previous,
                                        const JobWrite& write) override;
  absl::StatusOr<v1::Incumbent> RollBack(absl::string_view problem_text, absl::string_view device_class,
                                         v1::Policy policy, absl::string_view why, absl::string_view to) override;
  absl::StatusOr<v1::Incumbent> Unpin(absl::string_view problem_text, absl::string_view device_class,
                                      v1::Policy policy) override;
  absl::StatusOr<v1::Incumbent> GetIncumbent(absl::string_view problem_text, absl::string_view device_class,
                                             v1::Policy policy) override;
  absl::StatusOr<Page<v1::Incumbent>> ListIncumbents(const IncumbentFilter& filter, int page_size,
                                                     absl::string_view page_token) override;
  absl::StatusOr<std::vector<v1::Incumbent>> IncumbentsOf(const std::vector<std::string>& problem_texts) override;

  absl::StatusOr<std::string> AppendRetiming(const v1::Retiming& retiming, const JobWrite& write) override;
  absl::StatusOr<Page<v1::Retiming>> ListRetimings(const RetimingFilter& filter, int page_size,
                                                   absl::string_view page_token) override;

  absl::Status PutArtifact(const CompiledArtifact& artifact, absl::string_view bytes) override;
  absl::StatusOr<CompiledArtifact> FindArtifact(absl::string_view compile_key, absl::string_view toolchain) override;
  absl::StatusOr<int64_t> ForgetFailedCompiles(const std::vector<std::string>& compile_keys,
                                               absl::string_view toolchain) override;
  absl::StatusOr<std::string> ReadArtifact(absl::string_view sha256) override;

  absl::StatusOr<v1::Submission> RecordSubmission(const v1::Submission& submission, const JobWrite& write) override;
  absl::StatusOr<v1::Submission> GetSubmission(absl::string_view name) override;
  absl::StatusOr<Page<v1::Submission>> ListSubmissions(const SubmissionFilter& filter, int page_size,
                                                       absl::string_view page_token) override;
  absl::StatusOr<v1::Submission> MoveSubmission(absl::string_view name, const SubmissionMove& move) override;

  FakeQueue& queue() override;
  Hosts& hosts() override;
  FakeBlobs& blobs() override;

  absl::StatusOr<v1::Baseline> RecordBaseline(const v1::Baseline& baseline) override;
  absl::StatusOr<Page<v1::Baseline>> ListBaselines(absl::string_view problem_text, absl::string_view device_id,
                                                   int page_size, absl::string_view page_token) override;

  // Removes nothing: what tests have stored stays.
  absl::StatusOr<Retained> Retain(const Retention& retention, const std::function<bool()>& stopped) override;
  absl::StatusOr<BackupContents> Backup(const std::string& directory) override;  // Unimplemented: there are no files

 private:
  // A stored trial's reports.
  absl::Status Change(absl::string_view trial, const JobWrite& write, absl::FunctionRef<void(v1::Trial&)> change);

  const std::shared_ptr<State> state_;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_FAKE_STORE_H_
