// A disk that fails: every file operation of a workload, one after the other, in each way that disks fail. After each,
// the error names the file and the cause, the store goes on by itself, and what it has acknowledged is there.
//
// ATTUNE_FAULT_STRIDE: every how manieth operation fails (1 for all; the short form otherwise).
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/base/log.h"
#include "server/base/sha256.h"
#include "server/store/backups.h"
#include "server/store/files.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/maintenance/restore.h"
#include "server/store/testing/faulty_disk.h"
#include "server/store/testing/killed_program.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using testing::HasSubstr;

constexpr int kShortStride = 37;

int64_t Stride() {
  const char* text = std::getenv("ATTUNE_FAULT_STRIDE");
  int64_t stride = kShortStride;
  if (text != nullptr && (!absl::SimpleAtoi(text, &stride) || stride < 1)) ADD_FAILURE() << text;
  return stride;
}

// What the store has said is kept.
struct Acknowledged {
  std::map<std::string, std::string> trials;  // to the detail
  std::map<std::string, bool> jobs;           // to whether it has ended
  std::string incumbent;
  std::vector<std::string> artifacts;
  std::vector<v1::Blob> blobs;  // each with its file's name for data
  std::vector<std::string> backups;
};

// Everything that a daemon does with a store, step by step. A step that fails is told and keeps nobody from the next.
class Workload {
 public:
  explicit Workload(std::string root) : root_(std::move(root)) {}

  // `round` tells its names from those of another run.
  void Run(const std::string& round) {
    if (!Open()) return;
    Trial(round + " first");
    Artifact(round);
    BlobOf(round);
    Promote(round);
    Job(round);
    Back(round);
    Retain(round);
    Trial(round + " last");
  }

  bool Open() {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = DataDirectory()});
    if (!Told(store.status())) return false;
    store_ = *std::move(store);
    return true;
  }
  void Close() { store_.reset(); }
  bool is_open() const { return store_ != nullptr; }

  bool Trial(const std::string& detail) {
    v1::Trial trial = SampleTrial();
    trial.set_detail(detail + std::string(9000, '.'));  // more than a page
    const absl::StatusOr<std::string> name = store_->AppendTrial(trial, {});
    if (!Told(name.status())) return false;
    said_.trials[*name] = trial.detail();
    return true;
  }

  void Check() {
    for (const auto& [name, detail] : said_.trials) {
      const absl::StatusOr<v1::Trial> trial = store_->GetTrial(name);
      ASSERT_TRUE(trial.ok()) << trial.status();
      ASSERT_EQ(trial->detail(), detail);
    }
    for (const auto& [name, ended] : said_.jobs) {
      const absl::StatusOr<store::Job> job = store_->queue().Get(name);
      ASSERT_TRUE(job.ok()) << job.status();
      ASSERT_TRUE(!ended || job->operation.done()) << name;
    }
    for (const v1::Blob& blob : said_.blobs) ASSERT_EQ(store_->blobs().Read(blob).value_or("gone"), blob.file());
    for (const std::string& sha256 : said_.artifacts) ASSERT_TRUE(store_->ReadArtifact(sha256).ok()) << sha256;
    CheckIncumbent();
    CheckBackups();
  }

  // The errors since the last call.
  std::vector<absl::Status> TakeErrors() { return std::exchange(errors_, {}); }
  std::string DataDirectory() const { return root_ + "/data"; }

 private:
  bool Told(const absl::Status& status) {
    if (!status.ok()) errors_.push_back(status);
    return status.ok();
  }

  void Artifact(const std::string& round) {
    code_ = "code of " + round;
    if (Put(code_)) said_.artifacts.push_back(Sha256(code_));
    Put("nobody's code of " + round);  // what Retain removes
  }

  void BlobOf(const std::string& round) {
    v1::Blob blob;
    blob.set_principal("token:ci");
    blob.set_namespace_("triton");
    blob.set_key("key");
    blob.set_file(round);
    blob.set_data(round);
    const absl::StatusOr<v1::Blob> put = store_->blobs().Put(blob);
    if (Told(put.status())) said_.blobs.push_back(*put);
  }

  bool Put(const std::string& code) {
    CompiledArtifact artifact;
    artifact.compile_key = code;
    artifact.toolchain = "nvrtc 13.0";
    artifact.sha256 = Sha256(code);
    return Told(store_->PutArtifact(artifact, code));
  }

  void Promote(const std::string& round) {
    v1::Trial trial = SampleTrial(round.size() % 2 == 0 ? 64 : 128);
    trial.set_detail(round);
    trial.set_artifact_sha256(Sha256(code_));
    const absl::StatusOr<std::string> name = store_->AppendTrial(trial, {});
    if (!Told(name.status())) return;
    said_.trials[*name] = round;
    const absl::StatusOr<v1::Incumbent> served = store_->GetIncumbent(kProblem, kClass, v1::POLICY_HOT);
    if (!absl::IsNotFound(served.status()) && !Told(served.status())) return;
    v1::Incumbent incumbent;
    incumbent.mutable_trial()->set_name(*name);
    const absl::StatusOr<v1::Incumbent> promoted = store_->Promote(incumbent, served.ok() ? served->name() : "", {});
    if (Told(promoted.status())) said_.incumbent = promoted->name();
  }

  void Job(const std::string& round) {
    store::Job job;
    job.name = absl::StrCat("operations/", round);
    job.identity = job.request_id = job.name;
    job.operation.set_name(job.name);
    if (!Told(store_->queue().Create(job, {}).status())) return;
    said_.jobs.emplace(job.name, false);
    const auto leased = store_->queue().Lease(job.name, "holder", absl::Minutes(1));
    if (!Told(leased.status()) || !leased->has_value()) return;
    const Fence fence{job.name, (*leased)->epoch};
    Told(store_->queue().Renew(fence, absl::Minutes(1)).status());
    Told(store_->queue().Update(fence, job.operation));
    job.operation.set_done(true);
    if (Told(store_->queue().Finish(fence, job.operation))) said_.jobs[job.name] = true;
  }

  void Back(const std::string& round) {
    const absl::StatusOr<Backup> backup = Backups(store_.get(), root_ + "/backups").Create(round);
    if (Told(backup.status())) said_.backups.push_back(backup->path);
  }

  void Retain(const std::string& round) {
    Retention limits;
    limits.artifact_age = absl::ZeroDuration();
    limits.grace = absl::ZeroDuration();
    limits.now = absl::Now() + absl::Minutes(1);
    // Not the incumbent's, and where there is none, not this one.
    if (said_.incumbent.empty() && !said_.artifacts.empty()) said_.artifacts.pop_back();
    Told(store_->Retain(limits, [] { return false; }).status());
  }

  void CheckIncumbent() {
    if (said_.incumbent.empty()) return;
    const absl::StatusOr<v1::Incumbent> served = store_->GetIncumbent(kProblem, kClass, v1::POLICY_HOT);
    ASSERT_TRUE(served.ok()) << served.status();
    ASSERT_TRUE(store_->ReadArtifact(served->trial().artifact_sha256()).ok());
  }

  void CheckBackups() {
    for (const std::string& path : said_.backups) {
      const std::string restored = root_ + "/restored";
      const absl::StatusOr<Restored> result = Restore(path, restored);
      ASSERT_TRUE(result.ok()) << result.status();
      std::filesystem::remove_all(restored);
    }
  }

  const std::string root_;
  std::unique_ptr<Store> store_;
  Acknowledged said_;
  std::string code_;
  std::vector<absl::Status> errors_;
};

struct Way {
  std::string name;
  Fault fault;
  std::vector<absl::StatusCode> codes;  // that the caller may see
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class IoFaults : public testing::TestWithParam<Way> {
 protected:
  // A store as version 1 left it, so that opening it is work, too.
  static void MakeOldStore(const std::string& directory) {
    std::filesystem::create_directories(directory);
    const absl::StatusOr<std::string> dump = ReadFile(ATTUNE_SOURCE_DIR "/server/store/testdata/v1.sql");
    ASSERT_TRUE(dump.ok()) << dump.status();
    ASSERT_TRUE(sqlite::Connection::Open(directory + "/attune.db", sqlite::Connection::Access::kWrite)
                    .value()
                    ->Execute(*dump)
                    .ok());
  }

  static void ExpectClear(const absl::Status& error, const std::string& root, const std::string& victim) {
    // One that SQLite cannot open for writing it opens for reading, and no longer knows why.
    const bool opened_to_read = absl::IsPermissionDenied(error) && victim == "open attune.db";
    EXPECT_TRUE(opened_to_read || absl::c_linear_search(GetParam().codes, error.code())) << error;
    EXPECT_THAT(std::string(error.message()), HasSubstr(root)) << "no file is named";
  }

  // Whether the fault was reached: false when the workload has no such operation.
  bool FailAt(int64_t nth) {
    const TestDirectory directory;
    std::filesystem::copy(old_.path(), directory.path() + "/data");
    FaultyDisk disk(directory.path());
    Workload workload(directory.path());
    disk.Fail(GetParam().fault, nth);
    workload.Run("faulty");
    const bool reached = disk.failed() > 0;
    const std::string victim = disk.victim();
    SCOPED_TRACE(absl::StrCat(GetParam().name, " at operation ", nth, ": ", victim));
    for (const absl::Status& error : workload.TakeErrors()) ExpectClear(error, directory.path(), victim);
    disk.Heal();

    // The same store, if it is open: nobody restarts anything.
    EXPECT_TRUE(!workload.is_open() || workload.Trial("healed"));
    workload.Close();
    EXPECT_EQ(IntegrityCheck(workload.DataDirectory() + "/attune.db"), "ok");
    workload.Run("again");
    for (const absl::Status& error : workload.TakeErrors()) ADD_FAILURE() << error;
    if (workload.is_open()) workload.Check();
    return reached;
  }

  const TestDirectory old_;
};

TEST_P(IoFaults, AtEachOperationAreClearAndOver) {
  SetLogLevel(LogLevel::kError);
  MakeOldStore(old_.path());
  const int64_t stride = Stride();
  int64_t nth = 0;
  while (FailAt(nth) && !HasFailure()) nth += stride;
  RecordProperty("operations", static_cast<int>(nth));
  std::cout << GetParam().name << ": " << nth / stride << " of " << nth << " operations\n";
  EXPECT_GT(nth, 0) << "the workload has no such operation";
}

std::vector<Way> Ways() {
  using Code = absl::StatusCode;
  constexpr unsigned kTakesSpace = Fault::kOpen | Fault::kWrite | Fault::kTruncate | Fault::kRename;
  std::vector<Way> ways;
  for (const bool lasting : {false, true}) {
    const std::string when = lasting ? "FromThenOn" : "Once";
    const auto add = [&](const char* name, unsigned operations, int error, bool torn, std::vector<Code> codes) {
      const Fault fault = {.operations = operations, .error = error, .torn = torn, .lasting = lasting};
      ways.push_back({name + when, fault, std::move(codes)});
    };
    add("IoError", Fault::kChange, EIO, false, {Code::kUnavailable});
    add("TornWrite", Fault::kWrite, EIO, true, {Code::kUnavailable});
    // Unavailable: of the journal, which SQLite says nothing more of.
    add("FullDisk", kTakesSpace, ENOSPC, true, {Code::kResourceExhausted, Code::kUnavailable});
    add("FailingSync", Fault::kSync, EIO, false, {Code::kUnavailable});
    // SQLite takes a page that cannot be read for a damaged one.
    add("FailingRead", Fault::kRead, EIO, false, {Code::kUnavailable, Code::kDataLoss});
    add("NoDescriptors", Fault::kOpen, EMFILE, false, {Code::kUnavailable});
  }
  // One that lasts takes SQLite's five seconds of patience at each operation: tests/e2e/faults_test.py.
  ways.push_back({"BusyLockOnce", {.operations = Fault::kLock, .error = EAGAIN}, {Code::kUnavailable}});
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Disk, IoFaults, testing::ValuesIn(Ways()),
                         [](const testing::TestParamInfo<Way>& info) { return info.param.name; });

TEST(FailingUnlinks, LeaveNoBackupThatCannotBeRestored) {
  SetLogLevel(LogLevel::kError);
  const TestDirectory directory;
  const auto store = OpenSqliteStore({.directory = directory.path() + "/data"});
  ASSERT_TRUE((*store)->AppendTrial(SampleTrial(1), {}).ok());
  Backups backups(store->get(), directory.path() + "/backups");
  FaultyDisk disk(directory.path());
  int made = 0;
  for (int64_t nth = 0, failed = 1; failed > 0; ++nth) {
    disk.Fail({.operations = Fault::kRename, .error = EIO}, nth);
    const absl::StatusOr<Backup> backup = backups.Create(absl::StrCat("after-", nth));
    failed = disk.failed();
    SCOPED_TRACE(absl::StrCat(nth, ": ", disk.victim()));
    disk.Heal();
    if (!backup.ok()) {
      EXPECT_TRUE(absl::IsUnavailable(backup.status())) << backup.status();
      continue;
    }
    ++made;
    const absl::Status restored = Restore(backup->path, absl::StrCat(directory.path(), "/restored-", nth)).status();
    EXPECT_TRUE(restored.ok()) << restored;
  }
  EXPECT_GT(made, 1) << "one without a fault, and one whose log could not be removed at first";
}

// SQLite takes a page that cannot be read for damage, and what has a damaged row is served no longer.
TEST(FailingReads, AnIncumbentThatCouldNotBeReadKeepsItsPlace) {
  SetLogLevel(LogLevel::kError);
  const TestDirectory directory;
  v1::Incumbent other;
  {
    const auto store = OpenSqliteStore({.directory = directory.path()});
    v1::Incumbent incumbent;
    incumbent.mutable_trial()->set_name((*store)->AppendTrial(SampleTrial(1), {}).value());
    other.mutable_trial()->set_name((*store)->AppendTrial(SampleTrial(2), {}).value());
    ASSERT_TRUE((*store)->Promote(incumbent, "", {}).ok());
  }
  FaultyDisk disk(directory.path());
  for (int64_t nth = 0, failed = 1; failed > 0; ++nth) {
    SCOPED_TRACE(nth);
    const auto store = OpenSqliteStore({.directory = directory.path()});  // anew: nothing is in its cache
    ASSERT_TRUE(store.ok()) << store.status();
    disk.Fail({.operations = Fault::kRead, .error = EIO}, nth);
    const absl::Status promoted = (*store)->Promote(other, "", {}).status();
    EXPECT_FALSE(promoted.ok()) << "there is an incumbent, and the caller has not seen it";
    failed = disk.failed();
    disk.Heal();
    const absl::StatusOr<v1::Incumbent> served = (*store)->GetIncumbent(kProblem, kClass, v1::POLICY_HOT);
    ASSERT_TRUE(served.ok()) << served.status();
    EXPECT_EQ(served->trial().name(), "trials/1");
    ASSERT_TRUE(nth > 0 || failed > 0) << "nothing was read";
  }
}

}  // namespace
}  // namespace attune::store
