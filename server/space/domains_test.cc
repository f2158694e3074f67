// Domains of the families that ship, compared with the recipe of every length; and of families written for it.
#include "server/space/domains.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/attune/domain.h"
#include "server/base/device_profile.h"
#include "server/space/family.h"

namespace attune::space {
namespace {

using v1::Domain;

std::shared_ptr<const Family> Made(const std::string& manifest) {
  auto family = std::make_shared<Family>();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat(R"m(name: "made" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "x.cu"
                      parameters { name: "BLOCK" values: [16, 64] binding: BINDING_COMPILE_TIME guess: 16 })m",
                   manifest),
      &family->manifest));
  return family;
}

// Checks that the domains adjoin, that one has the problem's own length, and that each comes to RecipeFor's recipe at
// all of its lengths. Where they end.
std::pair<int64_t, int64_t> Checked(const Variant& variant, const Problem& problem, const v1::Device& device,
                                    Domain::Axis axis, const std::vector<Domain>& domains) {
  EXPECT_FALSE(domains.empty()) << variant.ToText();
  if (domains.empty()) return {0, 0};
  const v1::LaunchRecipe own = *RecipeFor(variant, problem, device);
  const CompileSpec spec = *SpecFor(variant, problem, device);
  for (size_t i = 0; i < domains.size(); ++i) {
    EXPECT_EQ(domains[i].axis(), axis);
    if (i > 0) {
      EXPECT_EQ(domains[i].low(), domains[i - 1].high() + 1);
    }
    for (int64_t length = domains[i].low(); length <= domains[i].high(); ++length) {
      const Problem there = WithLength(axis, length, problem);
      const auto asked = RecipeFor(variant, there, device);
      const auto worked_out = RecipeAt(own, domains[i], length);
      EXPECT_TRUE(asked.ok() && worked_out.ok()) << asked.status() << worked_out.status();
      if (!asked.ok() || !worked_out.ok()) return {0, 0};
      const bool same = worked_out->SerializeAsString() == asked->SerializeAsString();
      EXPECT_TRUE(same) << variant.ToText() << " " << ToText(there) << "\n" << domains[i].ShortDebugString();
      if (!same) return {0, 0};
      if (length % 64 == 0) {
        EXPECT_EQ(SpecFor(variant, there, device)->key, spec.key);
      }
    }
  }
  return {domains.front().low(), domains.back().high()};
}

using Ends = std::pair<int64_t, int64_t>;

class ShippedDomains : public ::testing::TestWithParam<const char*> {
 protected:
  static std::vector<std::shared_ptr<const Family>> Families() {
    auto families = LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
    EXPECT_TRUE(families.ok()) << families.status();
    return families.ok() ? *families : std::vector<std::shared_ptr<const Family>>();
  }
};

TEST_P(ShippedDomains, ComeToTheRecipeOfEveryLength) {
  const Problem problem = *ParseProblem(GetParam());
  int wide = 0;
  for (const char* profile : {"l4", "h200"}) {
    const v1::Device device = *DeviceProfile(profile);
    for (const auto& family : Families()) {
      if (family->manifest.backend() != device.backend() || family->manifest.role() > family::v1::ROLE_SEARCH) continue;
      const absl::StatusOr<std::vector<Variant>> some = Sample(family, problem, device, 4, 7);
      ASSERT_TRUE(some.ok()) << some.status();
      for (const Variant& variant : *some) {
        for (const Domain::Axis axis : AxesOf(problem)) {
          const int64_t own = LengthAlong(axis, problem);
          const int64_t low = std::max<int64_t>(1, own - 150);
          const auto domains = DomainsOf(variant, problem, device, axis, low, own + 150);
          const Ends ends = Checked(variant, problem, device, axis, domains);
          EXPECT_LE(ends.first, own);
          EXPECT_GE(ends.second, own);
          if (ends.second - ends.first > 60) ++wide;
        }
      }
    }
  }
  EXPECT_GT(wide, 4) << "most have a range worth the name";
}

INSTANTIATE_TEST_SUITE_P(All, ShippedDomains,
                         ::testing::Values("b64.h32.kvh8.q1.kv1100.d128.bf16", "b2.h8.q512.d64.bf16.causal",
                                           "b1.h2.q113.kv203.d256.f16.causal-br.lse", "b3.h8.q300.d128.f16.window100",
                                           "b4.h16.q2048.d128.f16.causal-br.sinks.varlen",
                                           "b8.h32.kvh8.q1.kv4096.d128.bf16.page16"));

const v1::Device kDevice = *DeviceProfile("l4");

TEST(Domains, ADecodesNumbersAreOneDomain) {
  const auto families = LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
  ASSERT_TRUE(families.ok());
  const Problem problem = *ParseProblem("b64.h32.kvh8.q1.kv1100.d128.bf16");
  for (const auto& family : *families) {
    if (family->name() != "attention_mma") continue;
    const Variant guess = *Guess(family, problem, kDevice);
    const auto domains = DomainsOf(guess, problem, kDevice, Domain::AXIS_KV, 1024, 2047);
    ASSERT_EQ(domains.size(), 1u);
    EXPECT_EQ(Checked(guess, problem, kDevice, Domain::AXIS_KV, domains), Ends(1024, 2047));
    EXPECT_LE(domains[0].varying_size(), 8);
  }
}

TEST(Domains, AFieldThatIsNoStepFunctionDividesThem) {
  const Variant variant{Made(R"m(launches { entry: "f" main: true grid_x: "ceil_div(seq_q, BLOCK)" block_x: "128"
                                           args { i32: "max(seq_kv, 100)" } args { i64: "seq_kv * 3" } })m"),
                        {16}};
  const Problem problem = *ParseProblem("b1.h1.q8.kv90.d64.f16");
  const auto domains = DomainsOf(variant, problem, kDevice, Domain::AXIS_KV, 64, 127);
  ASSERT_EQ(domains.size(), 2u);
  EXPECT_EQ(Checked(variant, problem, kDevice, Domain::AXIS_KV, domains), Ends(64, 127));
  EXPECT_EQ(domains[0].high(), 101) << "a constant and one step";
}

TEST(Domains, EndAtAConstraintThatForbids) {
  const Variant variant{Made(R"m(constraints { expr: "seq_kv >= 70 && seq_kv < 120" reason: "no" }
                                constraints { expr: "seq_kv < 80" reason: "does not pay" advice: true }
                                launches { entry: "f" main: true grid_x: "ceil_div(seq_q, BLOCK)" block_x: "128" })m"),
                        {16}};
  const Problem problem = *ParseProblem("b1.h1.q8.kv90.d64.f16");
  EXPECT_EQ(Checked(variant, problem, kDevice, Domain::AXIS_KV,
                    DomainsOf(variant, problem, kDevice, Domain::AXIS_KV, 64, 127)),
            Ends(70, 119));
  EXPECT_TRUE(DomainsOf(variant, *ParseProblem("b1.h1.q8.kv121.d64.f16"), kDevice, Domain::AXIS_KV, 64, 127).empty());
}

TEST(Domains, EndWhereTheCodeOrTheLaunchesAreOthers) {
  const Problem problem = *ParseProblem("b1.h1.q8.kv90.d64.f16");
  const auto ends = [&](const std::string& manifest) {
    const Variant variant{Made(manifest), {16}};
    return Checked(variant, problem, kDevice, Domain::AXIS_KV,
                   DomainsOf(variant, problem, kDevice, Domain::AXIS_KV, 64, 127));
  };
  const std::string plain = R"m(launches { entry: "f" main: true grid_x: "seq_q" block_x: "128" })m";
  EXPECT_EQ(ends(plain), Ends(64, 127));
  EXPECT_EQ(ends(plain + R"m(defines { name: "LONG" expr: "seq_kv > 99" })m"), Ends(64, 99)) << "other code";
  EXPECT_EQ(ends(plain + R"m(launches { entry: "g" when: "seq_kv > 80" grid_x: "1" block_x: "32" })m"), Ends(81, 127))
      << "another launch";
  EXPECT_EQ(ends(R"m(launches { entry: "f" main: true grid_x: "seq_q" block_x: "seq_kv > 95 ? 64 : 128" })m"),
            Ends(64, 95))
      << "another block";
  EXPECT_EQ(ends(R"m(launches { entry: "f" main: true grid_x: "1" block_x: "128"
                               args { f32: "seq_kv > 100 ? 1 : 2" } })m"),
            Ends(64, 100))
      << "a float";
}

TEST(Domains, OfManyTheOwnAndTheNextOnesAboveStay) {
  const Variant variant{Made(R"m(launches { entry: "f" main: true grid_x: "1" block_x: "128"
                                           args { i32: "mod(seq_kv * seq_kv, 7)" } })m"),
                        {16}};
  const Problem problem = *ParseProblem("b1.h1.q8.kv90.d64.f16");
  const auto domains = DomainsOf(variant, problem, kDevice, Domain::AXIS_KV, 64, 127);
  ASSERT_EQ(domains.size(), static_cast<size_t>(kMostDomains));
  EXPECT_LE(domains[0].low(), 90);
  EXPECT_GE(domains[0].high(), 90);
  Checked(variant, problem, kDevice, Domain::AXIS_KV, domains);
}

}  // namespace
}  // namespace attune::space
