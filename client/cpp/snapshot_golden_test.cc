// tests/golden/snapshot_ranges.json: what a snapshot says of problems in its answers' ranges.
#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "client/cpp/snapshot.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"

namespace attune {
namespace {

using ::nlohmann::json;

template <typename Message>
Message FromJson(const json& text) {
  Message message;
  const auto status = google::protobuf::util::JsonStringToMessage(text.dump(), &message);
  EXPECT_TRUE(status.ok()) << text << ": " << status.ToString();
  return message;
}

v1::Policy PolicyOf(const json& value) { return value["policy"] == "COLD" ? v1::POLICY_COLD : v1::POLICY_HOT; }

Snapshot SnapshotOf(const json& golden) {
  v1::ListDevicesResponse devices;
  for (const json& device : golden["devices"]) *devices.add_devices() = FromJson<v1::Device>(device);
  std::vector<SnapshotAnswer> answers;
  for (const json& answer : golden["answers"]) {
    SnapshotAnswer& entry = answers.emplace_back();
    *entry.request.mutable_problem() = ToProto(*ParseProblem(answer["problem"].get<std::string>()));
    entry.request.set_device_id(answer["device"]);
    entry.request.set_policy(PolicyOf(answer));
    auto response = FromJson<v1::GetBestResponse>(answer["response"]);
    *response.mutable_problem() = entry.request.problem();
    response.set_artifact("code");
    entry.answer = std::make_shared<const v1::GetBestResponse>(std::move(response));
  }
  return Snapshot(absl::FromUnixSeconds(golden["exported"].get<int64_t>()), std::move(devices), std::move(answers));
}

int64_t ArgumentOf(const v1::GetBestResponse& answer) {
  const v1::KernelArg& argument = answer.recipe().launches(0).args(0);
  return argument.has_i64() ? argument.i64() : argument.i32();
}

TEST(SnapshotGolden, ProblemsInRangesHaveTheAnswersThatPythonGives) {
  const json golden = Golden("snapshot_ranges");
  const std::string path = ::testing::TempDir() + "/snapshot_golden";
  ASSERT_TRUE(SnapshotOf(golden).Write(path).ok());
  const auto snapshot = Snapshot::Load(path);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  for (const json& vector : golden["vectors"]) {
    SCOPED_TRACE(vector["name"].get<std::string>());
    const Problem problem = *ParseProblem(vector["problem"].get<std::string>());
    const std::string device = vector["device"];
    const AnswerPtr answer = (*snapshot)->Find({problem, device, PolicyOf(vector)});
    ASSERT_EQ(answer != nullptr, vector.contains("provenance"));
    if (answer == nullptr) continue;
    const std::string provenance = vector["provenance"], detail = vector["detail"], source = golden["source"];
    EXPECT_EQ(v1::Provenance_Name(answer->provenance()), absl::StrCat("PROVENANCE_", provenance));
    EXPECT_EQ(answer->provenance_detail(), detail.empty() ? source : absl::StrCat(detail, "; ", source));
    EXPECT_EQ(answer->variant().text(), vector["variant"]);
    EXPECT_EQ(ArgumentOf(*answer), vector["argument"]);
    EXPECT_EQ(answer->artifact(), "code");
    EXPECT_EQ(ToText(*FromProto(answer->problem())), ToText(problem));
    // What is the answered problem's alone.
    const bool own = provenance != "NEAREST" && provenance != "HEURISTIC";
    EXPECT_EQ(answer->domains_size() > 0, own);
    EXPECT_TRUE(own || !(answer->has_geometry() || answer->pinned() || answer->ties_size() > 0));
  }
}

}  // namespace
}  // namespace attune
