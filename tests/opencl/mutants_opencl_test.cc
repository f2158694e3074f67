// Whether the daemon's checks find planted bugs: each mutant of attention_opencl is compiled, and checked as a trial
// is, on one problem of the features' list or the bench's like.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/space/space.h"
#include "server/trials/code.h"
#include "server/verify/verify.h"
#include "tests/opencl/device_testing.h"
#include "tests/opencl/mutants.h"

namespace attune::testing {
namespace {

// Of a device with so many all variants are worth trying.
constexpr int kComputeUnits = 2;

class OpenClKernelsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    host_ = OpenHost().release();
    prepared_ = new std::map<std::string, std::unique_ptr<verify::PreparedProblem>>();
  }
  static void TearDownTestSuite() {
    delete prepared_;
    delete host_;
  }
  void SetUp() override {
    if (host_ == nullptr) GTEST_SKIP() << "this host has no OpenCL device (PoCL: package pocl-opencl-icd)";
    auto families = space::LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
    ASSERT_TRUE(families.ok()) << families.status();
    families_ = *std::move(families);
  }

  // Code of a variant, as `change` leaves its sources, and its recipe.
  template <typename Message, typename Change>
  void Make(const char* text, const Problem& problem, Message& message, Change change) {
    v1::Device device = host_->device->info();
    device.set_compute_units(kComputeUnits);
    const auto variant = space::ParseVariant(text, families_);
    ASSERT_TRUE(variant.ok()) << variant.status();
    const auto spec = space::SpecFor(*variant, problem, device);
    ASSERT_TRUE(spec.ok()) << spec.status();
    worker::v1::CompileRequest request = trials::MakeCompileRequest(*variant->family, *spec, device);
    change(request);
    const auto compiled = host_->compiler->Compile(request);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    ASSERT_EQ(compiled->verdict(), v1::VERDICT_OK) << compiled->log();
    const auto recipe = space::RecipeFor(*variant, problem, device);
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    message.set_artifact(compiled->artifact());
    *message.mutable_recipe() = *recipe;
  }

  // Prepared once for all mutants.
  void Prepare(const Problem& problem, verify::PreparedProblem** result) {
    std::unique_ptr<verify::PreparedProblem>& prepared = (*prepared_)[ToText(problem)];
    if (prepared == nullptr) {
      const auto as_is = [](worker::v1::CompileRequest&) {};
      worker::v1::PrepareRequest request;
      *request.mutable_problem() = ToProto(problem);
      request.set_seed(1);
      ASSERT_NO_FATAL_FAILURE(Make("reference_opencl:PLAIN=0", problem, *request.mutable_exact(), as_is));
      ASSERT_NO_FATAL_FAILURE(Make("reference_opencl:PLAIN=1", problem, *request.mutable_plain(), as_is));
      auto made = verify::PreparedProblem::Create(*host_->device, problem, request, /*inspector=*/nullptr);
      ASSERT_TRUE(made.ok()) << made.status();
      prepared = *std::move(made);
    }
    *result = prepared.get();
  }

  static Host* host_;
  static std::map<std::string, std::unique_ptr<verify::PreparedProblem>>* prepared_;
  std::vector<std::shared_ptr<const space::Family>> families_;
};
Host* OpenClKernelsTest::host_ = nullptr;
std::map<std::string, std::unique_ptr<verify::PreparedProblem>>* OpenClKernelsTest::prepared_ = nullptr;

class MutantsTest : public OpenClKernelsTest, public ::testing::WithParamInterface<Mutant> {};

TEST_P(MutantsTest, IsFound) {
  const Mutant& mutant = GetParam();
  const Problem problem = *ParseProblem(mutant.problem);
  verify::PreparedProblem* prepared = nullptr;
  ASSERT_NO_FATAL_FAILURE(Prepare(problem, &prepared));
  int replaced = 0;
  worker::v1::Candidate candidate;
  candidate.set_deterministic(true);
  ASSERT_NO_FATAL_FAILURE(Make(mutant.variant, problem, candidate, [&](worker::v1::CompileRequest& request) {
    for (worker::v1::SourceFile& source : *request.mutable_sources()) {
      if (!absl::EndsWith(source.path(), mutant.file)) continue;
      std::string text = source.text();
      replaced += absl::StrReplaceAll({{mutant.from, mutant.to}}, &text);
      source.set_text(text);
    }
  }));
  ASSERT_EQ(replaced, 1) << "places in " << mutant.file << " that are '" << mutant.from << "'";
  const auto response = prepared->Check(candidate, verify::PreparedProblem::Look::kOnHost);
  ASSERT_TRUE(response.ok()) << response.status();
  if (*mutant.why_not == '\0') {
    EXPECT_THAT(response->verdict(), ::testing::AnyOf(v1::VERDICT_WRONG_RESULT, v1::VERDICT_OUT_OF_BOUNDS))
        << response->detail();
    RecordProperty("found", response->detail());
  } else {
    EXPECT_EQ(response->verdict(), v1::VERDICT_OK) << "found after all: " << response->detail();
  }
}

TEST_F(OpenClKernelsTest, AreRightWithoutABug) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Mutant& mutant : Mutants()) {
    if (!seen.emplace(mutant.problem, mutant.variant).second) continue;
    const Problem problem = *ParseProblem(mutant.problem);
    verify::PreparedProblem* prepared = nullptr;
    ASSERT_NO_FATAL_FAILURE(Prepare(problem, &prepared));
    worker::v1::Candidate candidate;
    candidate.set_deterministic(true);
    ASSERT_NO_FATAL_FAILURE(Make(mutant.variant, problem, candidate, [](worker::v1::CompileRequest&) {}));
    const auto response = prepared->Check(candidate, verify::PreparedProblem::Look::kOnHost);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->verdict(), v1::VERDICT_OK) << mutant.problem << " " << mutant.variant << response->detail();
  }
}

INSTANTIATE_TEST_SUITE_P(All, MutantsTest, ::testing::ValuesIn(Mutants()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace attune::testing
