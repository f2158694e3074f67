#include "client/cpp/snapshot.h"

#include <filesystem>
#include <fstream>

#include "client/cpp/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class SnapshotTest : public ::testing::Test {
 protected:
  static Snapshot Make() {
    v1::ListDevicesResponse devices;
    devices.add_devices()->set_id("cuda:0");
    devices.add_devices()->set_id("cuda:1");
    return Snapshot(
        absl::FromUnixSeconds(1790000000), devices,
        {Answer("cuda:0", "first", v1::PROVENANCE_EXACT), Answer("cuda:1", "second", v1::PROVENANCE_STALE)});
  }
  static SnapshotAnswer Answer(const std::string& device, const std::string& variant, v1::Provenance provenance) {
    SnapshotAnswer entry;
    *entry.request.mutable_problem() = ToProto(*ParseProblem("b2.h8.q512.d64.f16"));
    entry.request.set_device_id(device);
    entry.request.set_policy(v1::POLICY_HOT);
    auto answer = std::make_shared<v1::GetBestResponse>();
    answer->mutable_variant()->set_text(variant);
    answer->set_provenance(provenance);
    answer->set_artifact(std::string(1000, 'c'));
    if (provenance == v1::PROVENANCE_STALE) answer->set_provenance_detail("the driver changed");
    entry.answer = std::move(answer);
    return entry;
  }
  absl::Status LoadError() { return Snapshot::Load(path_).status(); }
  std::string Bytes() { return *ReadFile(path_); }
  void Rewrite(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

  const Problem problem_ = *ParseProblem("b2.h8.q512.d64.f16");
  const std::string path_ =
      ::testing::TempDir() + "/snapshot_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(SnapshotTest, ReadsBackWhatItWrote) {
  ASSERT_TRUE(Make().Write(path_).ok());
  const auto snapshot = Snapshot::Load(path_);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ((*snapshot)->exported(), absl::FromUnixSeconds(1790000000));
  EXPECT_EQ((*snapshot)->devices().devices_size(), 2);
  ASSERT_EQ((*snapshot)->answers().size(), 2u);
  const AnswerPtr second = (*snapshot)->Find({problem_, "cuda:1", v1::POLICY_HOT});
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->variant().text(), "second");
  EXPECT_EQ(second->artifact(), std::string(1000, 'c'));
}

TEST_F(SnapshotTest, KeepsTheProvenanceAndSaysWhereTheAnswerIsFrom) {
  const AnswerPtr stale = Make().Find({problem_, "cuda:1", v1::POLICY_HOT});
  EXPECT_EQ(stale->provenance(), v1::PROVENANCE_STALE);
  EXPECT_EQ(stale->provenance_detail(), "the driver changed; from the snapshot of 2026-09-21 14:13 UTC");
}

TEST_F(SnapshotTest, NoDeviceMeansTheFirst) {
  EXPECT_EQ(Make().Find({problem_, "", v1::POLICY_HOT})->variant().text(), "first");
}

TEST_F(SnapshotTest, KnowsADeviceByItsUuidAndItsClassToo) {
  v1::ListDevicesResponse devices;
  devices.add_devices()->set_id("cuda:0");
  v1::Device& second = *devices.add_devices();
  second.set_id("cuda:1");
  second.set_uuid("GPU-1");
  second.set_class_alias("l4");
  const Snapshot snapshot(absl::UnixEpoch(), devices, {Answer("cuda:1", "second", v1::PROVENANCE_EXACT)});
  for (const char* name : {"cuda:1", "GPU-1", "l4"}) {
    const AnswerPtr answer = snapshot.Find({problem_, name, v1::POLICY_HOT});
    ASSERT_NE(answer, nullptr) << name;
    EXPECT_EQ(answer->variant().text(), "second");
  }
  EXPECT_EQ(snapshot.Find({problem_, "h200", v1::POLICY_HOT}), nullptr);
}

TEST_F(SnapshotTest, KnowsTheBestByAnObjectiveOrSaysThatItHasNone) {
  SnapshotAnswer least = Answer("cuda:0", "least energy", v1::PROVENANCE_EXACT);
  least.request.set_objective(v1::OBJECTIVE_ENERGY);
  v1::ListDevicesResponse devices;
  devices.add_devices()->set_id("cuda:0");
  const Snapshot snapshot(absl::FromUnixSeconds(1790000000), devices,
                          {least, Answer("cuda:0", "fastest", v1::PROVENANCE_EXACT)});
  EXPECT_EQ(snapshot.Find({problem_, "", v1::POLICY_HOT})->variant().text(), "fastest");
  EXPECT_EQ(snapshot.Find({problem_, "", v1::POLICY_HOT, v1::OBJECTIVE_ENERGY})->variant().text(), "least energy");
  const AnswerPtr product = snapshot.Find({problem_, "", v1::POLICY_HOT, v1::OBJECTIVE_EDP});
  EXPECT_EQ(product->variant().text(), "fastest");
  EXPECT_EQ(
      product->provenance_detail(),
      "from the snapshot of 2026-09-21 14:13 UTC; chosen by time: it has none with the least energy-delay product");
  EXPECT_EQ(snapshot.Find({problem_, "cuda:2", v1::POLICY_HOT, v1::OBJECTIVE_ENERGY}), nullptr);
}

// Nobody writes it so, but it says what is meant where none is named.
TEST_F(SnapshotTest, AnAnswerByTimeIsThatOfNoObjective) {
  SnapshotAnswer fastest = Answer("cuda:0", "fastest", v1::PROVENANCE_EXACT);
  fastest.request.set_objective(v1::OBJECTIVE_TIME);
  const Snapshot snapshot(absl::UnixEpoch(), {}, {fastest});
  const AnswerPtr found = snapshot.Find({problem_, "cuda:0", v1::POLICY_HOT});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->variant().text(), "fastest");
}

TEST_F(SnapshotTest, HasNoAnswerForWhatWasNotExported) {
  const Problem other = *ParseProblem("b1.h1.q1.d64.f16");
  EXPECT_EQ(Make().Find({other, "", v1::POLICY_HOT}), nullptr);
  EXPECT_EQ(Make().Find({problem_, "cuda:2", v1::POLICY_HOT}), nullptr);
  EXPECT_EQ(Make().Find({problem_, "", v1::POLICY_COLD}), nullptr);
}

TEST_F(SnapshotTest, EveryFlippedByteIsNoticed) {
  ASSERT_TRUE(Make().Write(path_).ok());
  const std::string good = Bytes();
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    Rewrite(bad);
    EXPECT_FALSE(LoadError().ok()) << "byte " << i;
  }
}

TEST_F(SnapshotTest, ATruncatedFileIsDamaged) {
  ASSERT_TRUE(Make().Write(path_).ok());
  const std::string good = Bytes();
  for (const size_t length : {size_t{0}, size_t{7}, size_t{55}, size_t{56}, good.size() - 1}) {
    Rewrite(good.substr(0, length));
    EXPECT_EQ(LoadError().code(), absl::StatusCode::kDataLoss) << length;
  }
}

TEST_F(SnapshotTest, AnotherVersionIsNamed) {
  ASSERT_TRUE(Make().Write(path_).ok());
  std::string bytes = Bytes();
  bytes[8] = 2;
  Rewrite(bytes);
  EXPECT_EQ(LoadError().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(LoadError().message()), HasSubstr("version 2; this program reads version 1"));
}

TEST_F(SnapshotTest, AMissingFileIsNotFound) { EXPECT_TRUE(absl::IsNotFound(LoadError())); }

TEST_F(SnapshotTest, WritingWhereItCannotLeavesTheOldFile) {
  EXPECT_FALSE(Make().Write("/nonexistent/folder/snapshot").ok());
  ASSERT_TRUE(Make().Write(path_).ok());
  ASSERT_TRUE(Make().Write(path_).ok());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(::testing::TempDir())) {
    if (entry.path().filename().string().rfind(std::filesystem::path(path_).filename().string(), 0) == 0) ++files;
  }
  EXPECT_EQ(files, 1) << "a temporary file was left behind";
}

}  // namespace
}  // namespace attune
