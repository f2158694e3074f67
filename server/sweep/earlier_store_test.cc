// A store of schema version 1 under a whole tuner: what it knows is listed and served, and its unfinished jobs go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/problem.h"
#include "server/catalog/class_alias.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/daemon/tuning.h"
#include "server/store/files.h"
#include "server/store/sqlite/connection.h"
#include "server/store/testing/test_directory.h"
#include "server/store/testing/unfinished.h"
#include "server/supervisor/testing/fake_workers.h"

namespace attune::sweep {
namespace {

using store::sqlite::Connection;

constexpr char kProblem[] = "b2.h8.q512.d64.f16";

std::string Hex(const google::protobuf::Message& message) {
  return absl::StrCat("X'", absl::BytesToHexString(message.SerializeAsString()), "'");
}

v1::TuneRequest TuneOf(const std::string& problem) {
  v1::TuneRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem(problem));
  request.set_device_id("cuda:0");
  request.set_policy(v1::POLICY_HOT);
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_EXHAUSTIVE);
  return request;
}

// testdata/v1.sql, its unfinished tuning with a request that can be carried out, and an unfinished sweep with one of
// two rows; what is served has the ties that the dump has on another incumbent.
std::string EarlierStore() {
  std::string dump = *store::ReadFile(ATTUNE_SOURCE_DIR "/server/store/testdata/v1.sql");
  v1::SweepRequest sweep;
  sweep.mutable_plan()->set_device_id("cuda:0");
  sweep.mutable_plan()->set_policy(v1::POLICY_HOT);
  for (const char* problem : {"b1.h1.q128.d64.f16", "b1.h2.q128.d64.f16"}) {
    sweep.mutable_plan()->add_shapes()->add_problem(problem);
  }
  v1::Operation operation;
  operation.set_name("operations/9");
  operation.set_state(v1::Operation::STATE_RUNNING);
  v1::SweepReport::Row& row = *operation.mutable_sweep()->add_rows();
  row.set_problem("b1.h1.q128.d64.f16");
  row.set_outcome(v1::SweepReport::OUTCOME_FASTER);
  absl::StrAppend(&dump, "UPDATE jobs SET request = ", Hex(TuneOf(kProblem)), " WHERE id = 1;",
                  "INSERT INTO jobs VALUES (9, 'operations/9', 2, ", Hex(sweep), ", NULL, 0, ", Hex(operation), ");",
                  "UPDATE incumbents SET ties = (SELECT ties FROM incumbents WHERE id = 2) WHERE id = 1;");
  return dump;
}

TEST(EarlierStore, IsListedServedAndResumed) {
  const store::TestDirectory directory;
  ASSERT_TRUE(
      (*Connection::Open(directory.path() + "/attune.db", Connection::Access::kWrite))->Execute(EarlierStore()).ok());
  const std::unique_ptr<store::Store> store = store::OpenSqliteStore({.directory = directory.path()}).value();
  EXPECT_EQ(store->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "")->items.size(), 3U);
  EXPECT_EQ(store->ListIncumbents({.history = true}, 10, "")->items.size(), 2U);
  EXPECT_EQ(store->queue().List({.active_only = true}, 10, "")->items.size(), 2U);

  v1::Device card = catalog::FakeDevice();
  card.set_fingerprint("l4");
  supervisor::FakeCompilePool pool;
  supervisor::FakeDeviceWorker device(card);
  device.ScriptUs([](const worker::v1::Candidate&) { return 100.0; });
  catalog::Host host = catalog::FakeHost();
  host.devices = {card};
  catalog::NameClasses(host.devices);
  const std::unique_ptr<catalog::Results> results = catalog::Results::Load(*store, host).value();
  const auto served = results->Served({kProblem, "l4", v1::POLICY_HOT});
  ASSERT_TRUE(served.ok() && served->has_value()) << served.status();
  EXPECT_EQ((*served)->trial().variant().text(), "attention_simt:BLOCK_M=64");
  EXPECT_EQ((*served)->ties_size(), 1);

  const std::unique_ptr<Tuning> tuning =
      Tuning::Create(
          {.host = host, .store = *store, .results = *results, .compiler = pool, .devices = {{"cuda:0", &device}}})
          .value();
  ASSERT_TRUE(tuning->tuner().Resume().ok());
  ASSERT_TRUE(store::AwaitAllEnded(store->queue()));
  const v1::Operation tuned = store->queue().Get("operations/1")->operation;
  EXPECT_EQ(tuned.state(), v1::Operation::STATE_SUCCEEDED) << tuned.error().message();
  EXPECT_EQ(tuned.tune().incumbent().trial().problem_text(), kProblem);
  const v1::Operation swept = store->queue().Get("operations/9")->operation;
  EXPECT_EQ(swept.state(), v1::Operation::STATE_SUCCEEDED) << swept.error().message();
  ASSERT_EQ(swept.sweep().rows_size(), 2);
  EXPECT_EQ(swept.sweep().rows(0).outcome(), v1::SweepReport::OUTCOME_FASTER) << "as the earlier version had found";
  EXPECT_EQ(swept.sweep().rows(1).outcome(), v1::SweepReport::OUTCOME_NEW);
}

}  // namespace
}  // namespace attune::sweep
