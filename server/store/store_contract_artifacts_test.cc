#include "server/base/sha256.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

class ArtifactContract : public StoreContract {};

CompiledArtifact Compiled(absl::string_view bytes) {
  CompiledArtifact artifact;
  artifact.compile_key = "key";
  artifact.toolchain = "nvrtc 13.0";
  artifact.log = "ptxas info";
  artifact.sha256 = Sha256(bytes);
  artifact.entries.emplace_back().set_name("attention");
  artifact.entries.back().set_registers(96);
  artifact.compile_ms = 37.5;
  return artifact;
}

CompiledArtifact Failed(v1::Verdict verdict) {
  CompiledArtifact artifact = Compiled("");
  artifact.verdict = verdict;
  artifact.sha256.clear();
  artifact.entries.clear();
  return artifact;
}

TEST_P(ArtifactContract, ReturnsWhatWasCompiledAcrossReopening) {
  const std::string cubin(
      "\0\x7f"
      "ELF\n",
      6);
  ASSERT_TRUE(store().PutArtifact(Compiled(cubin), cubin).ok());
  Reopen();
  absl::StatusOr<CompiledArtifact> found = store().FindArtifact("key", "nvrtc 13.0");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->verdict, v1::VERDICT_OK);
  EXPECT_EQ(found->log, "ptxas info");
  EXPECT_EQ(found->sha256, Sha256(cubin));
  EXPECT_EQ(found->compile_ms, 37.5);
  ASSERT_EQ(found->entries.size(), 1U);
  EXPECT_EQ(found->entries[0].name(), "attention");
  EXPECT_EQ(found->entries[0].registers(), 96);
  EXPECT_EQ(store().ReadArtifact(found->sha256).value(), cubin);
}

TEST_P(ArtifactContract, KeepsCompilersApart) {
  ASSERT_TRUE(store().PutArtifact(Compiled("cubin"), "cubin").ok());
  EXPECT_EQ(store().FindArtifact("key", "nvrtc 12.9").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().FindArtifact("other", "nvrtc 13.0").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(ArtifactContract, RemembersWhatDidNotCompile) {
  ASSERT_TRUE(store().PutArtifact(Failed(v1::VERDICT_TIMEOUT), "").ok());
  absl::StatusOr<CompiledArtifact> found = store().FindArtifact("key", "nvrtc 13.0");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->verdict, v1::VERDICT_TIMEOUT);
  EXPECT_EQ(found->sha256, "");
}

TEST_P(ArtifactContract, ReplacesWhatWasKnownOfAKey) {
  ASSERT_TRUE(store().PutArtifact(Failed(v1::VERDICT_CRASHED), "").ok());
  ASSERT_TRUE(store().PutArtifact(Compiled("cubin"), "cubin").ok());
  EXPECT_EQ(store().FindArtifact("key", "nvrtc 13.0")->verdict, v1::VERDICT_OK);
}

TEST_P(ArtifactContract, ForgetsFailedCompilesAndNoGoodOne) {
  ASSERT_TRUE(store().PutArtifact(Failed(v1::VERDICT_CRASHED), "").ok());
  EXPECT_EQ(store().ForgetFailedCompiles({"key", "other"}, "nvrtc 12.9").value(), 0);
  EXPECT_EQ(store().ForgetFailedCompiles({"key", "other"}, "nvrtc 13.0").value(), 1);
  EXPECT_EQ(store().FindArtifact("key", "nvrtc 13.0").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store().PutArtifact(Compiled("cubin"), "cubin").ok());
  EXPECT_EQ(store().ForgetFailedCompiles({"key"}, "nvrtc 13.0").value(), 0);
  EXPECT_TRUE(store().FindArtifact("key", "nvrtc 13.0").ok());
}

TEST_P(ArtifactContract, RefusesBytesThatDisagreeWithTheVerdictOrTheHash) {
  EXPECT_EQ(store().PutArtifact(Failed(v1::VERDICT_COMPILE_ERROR), "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store().PutArtifact(Compiled(""), "").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store().PutArtifact(Compiled("one"), "other").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store().FindArtifact("key", "nvrtc 13.0").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(ArtifactContract, ReadsNothingThatIsNotAHash) {
  for (const std::string& name :
       {std::string("../../attune.db"), std::string(), std::string(64, 'A'), Sha256("none")}) {
    EXPECT_EQ(store().ReadArtifact(name).status().code(), absl::StatusCode::kNotFound) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Store, ArtifactContract, testing::ValuesIn(Implementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
