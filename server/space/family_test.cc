#include "server/space/family.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/space/testing/testing_family.h"

namespace attune::space {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Everything that a manifest must have.
std::string Manifest(const std::string& more) {
  return absl::StrCat(R"(name: "small" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA
    sources: "small.cu"
    parameters { name: "TILE" values: [16, 32] guess: 16 binding: BINDING_COMPILE_TIME }
    )",
                      more);
}
constexpr char kLaunch[] = "launches { entry: \"run\" main: true grid_x: \"ceil_div(seq_q, TILE)\" }";

std::string Error(const TestingFamilies& families, const std::string& manifest) {
  families.Write("small/family.textproto", manifest);
  families.Write("small/small.cu", "");
  const auto family = LoadFamily(families.root(), "small");
  return family.ok() ? "no error" : std::string(family.status().message());
}

TEST(LoadFamily, CollectsWhatItsSourcesInclude) {
  const TestingFamilies families;
  families.Write("small/family.textproto", Manifest(kLaunch));
  families.Write("small/small.cu", "#include \"common/a.cuh\"\n#include <cuda_fp16.h>\n  #  include \"b.cuh\"\n");
  families.Write("small/b.cuh", "#include \"common/a.cuh\"\n");
  families.Write("common/a.cuh", "int a;");
  const auto family = LoadFamily(families.root(), "small");
  ASSERT_TRUE(family.ok()) << family.status();
  EXPECT_THAT((*family)->sources,
              ElementsAre(Pair("small.cu", ::testing::_), Pair("common/a.cuh", "int a;"), Pair("b.cuh", ::testing::_)));
}

TEST(LoadFamily, AChangedIncludeChangesTheHash) {
  const TestingFamilies families;
  families.Write("small/family.textproto", Manifest(kLaunch));
  families.Write("small/small.cu", "#include \"common/a.cuh\"\n");
  families.Write("common/a.cuh", "int a;");
  const std::string before = (*LoadFamily(families.root(), "small"))->source_hash;
  EXPECT_EQ((*LoadFamily(families.root(), "small"))->source_hash, before);
  families.Write("common/a.cuh", "int b;");
  EXPECT_NE((*LoadFamily(families.root(), "small"))->source_hash, before);
}

std::string HashOf(const std::string& manifest) {
  const TestingFamilies families;
  families.Write("small/family.textproto", manifest);
  families.Write("small/small.cu", "");
  const auto family = LoadFamily(families.root(), "small");
  EXPECT_TRUE(family.ok()) << family.status();
  return family.ok() ? (*family)->source_hash : "";
}

TEST(LoadFamily, ALargerSpaceKeepsTheHash) {
  const std::string before = HashOf(Manifest(kLaunch));
  EXPECT_EQ(HashOf(Manifest(absl::StrCat(kLaunch, "# for people\ndescription: \"small\""))), before);
  EXPECT_EQ(HashOf(Manifest(absl::StrCat(kLaunch, "constraints { expr: \"TILE < 32\" reason: \"x\" }"))), before);
  EXPECT_EQ(HashOf(Manifest(absl::StrCat(kLaunch, "guess_precedence: 1"))), before);
  EXPECT_EQ(
      HashOf(Manifest(absl::StrCat(kLaunch, "constraints { expr: \"TILE < 32\" reason: \"x\" guess_only: true }"))),
      before);
  EXPECT_EQ(HashOf(absl::StrReplaceAll(Manifest(kLaunch), {{"[16, 32] guess: 16", "[16, 32, 64] guess: 64"}})), before);
  EXPECT_EQ(HashOf(absl::StrReplaceAll(Manifest(kLaunch), {{"guess: 16", "guess: 16 when_absent: 32"}})), before);
}

TEST(LoadFamily, WhatChangesCodeOrLaunchChangesTheHash) {
  const std::string before = HashOf(Manifest(kLaunch));
  EXPECT_NE(HashOf(Manifest(absl::StrCat(kLaunch, "compile_options: \"-lineinfo\""))), before);
  EXPECT_NE(HashOf(Manifest(absl::StrCat(kLaunch, "defines { name: \"X\" expr: \"1\" }"))), before);
  EXPECT_NE(HashOf(absl::StrReplaceAll(Manifest(kLaunch), {{"ceil_div(seq_q, TILE)", "seq_q"}})), before);
  EXPECT_NE(HashOf(absl::StrReplaceAll(Manifest(kLaunch), {{"COMPILE_TIME", "LAUNCH_TIME"}})), before);
}

TEST(LoadFamily, NothingOutsideTheKernelsIsRead) {
  const TestingFamilies families;
  families.Write("secret.h", "");
  families.Write("kernels/small/family.textproto", Manifest(kLaunch));
  families.Write("kernels/small/small.cu", "#include \"../../secret.h\"\n");
  EXPECT_THAT(std::string(LoadFamily(families.root() + "/kernels", "small").status().message()),
              HasSubstr("includes \"../../secret.h\""));
  families.Write("kernels/small/small.cu", "");
  families.Write("kernels/small/family.textproto", Manifest(absl::StrCat(kLaunch, "sources: \"//../secret.h\"")));
  EXPECT_THAT(std::string(LoadFamily(families.root() + "/kernels", "small").status().message()),
              HasSubstr("sources has '//../secret.h'"));
}

TEST(LoadFamily, TheRootMayBeSpelledInAnyWay) {
  const TestingFamilies families;
  families.Write("small/family.textproto", Manifest(absl::StrCat(kLaunch, "sources: \"//common/a.cuh\"")));
  families.Write("small/small.cu", "#include \"b.cuh\"\n");
  families.Write("small/b.cuh", "");
  families.Write("common/a.cuh", "");
  const std::string hash = (*LoadFamily(families.root(), "small"))->source_hash;
  const std::string relative = std::filesystem::relative(families.root()).string();
  for (const std::string& root : {families.root() + "/", families.root() + "/small/..", relative, "./" + relative}) {
    const auto family = LoadFamily(root, "small");
    ASSERT_TRUE(family.ok()) << family.status();
    EXPECT_EQ((*family)->source_hash, hash);
  }
}

TEST(LoadFamily, AnErrorNamesFileFieldAndValue) {
  const TestingFamilies families;
  EXPECT_EQ(Error(families, Manifest(kLaunch)), "no error");
  EXPECT_THAT(Error(families, "nonsense: 1"), HasSubstr("small/family.textproto: line 1, column 9"));
  EXPECT_THAT(Error(families, Manifest("")), HasSubstr("0 of them are main"));
  EXPECT_THAT(Error(families, Manifest(absl::StrCat(kLaunch, "lets { name: \"x\" expr: \"TILES + 1\" }"))),
              HasSubstr("TILES"));
  EXPECT_THAT(Error(families, Manifest(absl::StrCat(kLaunch, "lets { name: \"batch\" expr: \"1\" }"))),
              HasSubstr("'batch', which is taken"));
  EXPECT_THAT(Error(families, Manifest(absl::StrCat(kLaunch, "lets { name: \"max\" expr: \"1\" }"))),
              HasSubstr("'max', which is a function"));
  EXPECT_THAT(Error(families, Manifest(absl::StrCat(kLaunch, "problem_limits { expr: \"TILE > 1\" reason: \"r\" }"))),
              HasSubstr("depends on parameters"));
  EXPECT_THAT(Error(families, Manifest("launches { entry: \"run\" main: true args { scratch: \"partial\" } }")),
              HasSubstr("'partial', which is no scratch buffer"));
  EXPECT_THAT(Error(families, Manifest(absl::StrCat(kLaunch, "parameters { name: \"W\" values: [1] guess: 1 }"))),
              HasSubstr("parameters 'W': binding is not given"));
  EXPECT_THAT(Error(families, Manifest(absl::StrCat(
                                  kLaunch, "parameters { name: \"W\" values: [1] binding: BINDING_LAUNCH_TIME }"))),
              HasSubstr("guess is 0"));
  EXPECT_THAT(Error(families, absl::StrReplaceAll(Manifest(kLaunch), {{"guess: 16", "guess: 16 when_absent: 8"}})),
              HasSubstr("parameters 'TILE': when_absent is 8"));
}

TEST(LoadFamily, EveryRuleHasAReason) {
  const TestingFamilies families;
  EXPECT_THAT(Error(families, Manifest(absl::StrCat(kLaunch, "constraints { expr: \"TILE > 1\" }"))),
              HasSubstr("constraints[0].reason is empty"));
}

TEST(LoadFamily, NothingIsDefinedTwice) {
  const TestingFamilies families;
  EXPECT_THAT(Error(families, Manifest(absl::StrCat(kLaunch, "defines { name: \"TILE\" expr: \"1\" }"))),
              HasSubstr("'TILE', which is a parameter or another define"));
}

TEST(LoadFamily, ASpaceHasABound) {
  const TestingFamilies families;
  std::string manifest = Manifest(kLaunch);
  for (char name = 'A'; name <= 'M'; ++name) {
    absl::StrAppend(&manifest, "parameters { name: \"", std::string(1, name),
                    "\" values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] binding: BINDING_COMPILE_TIME }");
  }
  EXPECT_THAT(Error(families, manifest), HasSubstr("parameters: 2e+13 combinations; allowed: 1e+12"));
}

TEST(LoadFamily, ARoleHasItsShape) {
  const TestingFamilies families;
  EXPECT_THAT(Error(families, Manifest(absl::StrCat(kLaunch, "role: ROLE_REFERENCE"))), HasSubstr("PLAIN"));
  EXPECT_THAT(Error(families, Manifest(absl::StrCat(kLaunch, "role: ROLE_FLOOR"))), HasSubstr("ROLE_FLOOR has one"));
}

TEST(LoadFamily, ADefineMustNotDependOnTheLaunch) {
  const TestingFamilies families;
  EXPECT_THAT(Error(families,
                    Manifest(absl::StrCat(kLaunch,
                                          "parameters { name: \"S\" values: [1] guess: 1 binding: BINDING_LAUNCH_TIME }"
                                          "defines { name: \"X\" expr: \"S\" }"))),
              HasSubstr("launch-time"));
}

TEST(LoadFamily, AMissingIncludeIsNamedWithItsSource) {
  const TestingFamilies families;
  families.Write("small/family.textproto", Manifest(kLaunch));
  families.Write("small/small.cu", "#include \"gone.cuh\"\n");
  EXPECT_THAT(std::string(LoadFamily(families.root(), "small").status().message()), HasSubstr("includes \"gone.cuh\""));
}

// The text between the fence that opens with `language` and its end.
std::string Block(const std::string& document, const std::string& language) {
  const std::string fence = absl::StrCat("```", language, "\n");
  const size_t begin = document.find(fence) + fence.size();
  return document.substr(begin, document.find("```\n", begin) - begin);
}

TEST(LoadFamily, LoadsTheExampleOfTheDocumentation) {
  std::ifstream file(ATTUNE_SOURCE_DIR "/docs/families.md");
  const std::string document((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const TestingFamilies families;
  families.Write("attention_rows/family.textproto", Block(document, "proto"));
  families.Write("attention_rows/attention_rows.cl", Block(document, "c"));
  const auto family = LoadFamily(families.root(), "attention_rows");
  ASSERT_TRUE(family.ok()) << family.status();
  EXPECT_THAT((*family)->sources[0].second, HasSubstr("__kernel void attention_rows("));
}

TEST(LoadEveryFamily, NamesEveryMistakeAndKeepsWhatIsGood) {
  const TestingFamilies families;
  families.Write("good/family.textproto", absl::StrReplaceAll(Manifest(kLaunch), {{"\"small\"", "\"good\""}}));
  families.Write("good/small.cu", "");
  families.Write("bad/family.textproto", "name: \"other\" backend: BACKEND_CUDA sources: \"none.cu\"");
  families.Write("worse/family.textproto", "nonsense: 1");
  const LoadedFamilies loaded = LoadEveryFamily({families.root(), families.root(), families.root() + "/none"});
  ASSERT_EQ(loaded.families.size(), 1u);
  std::vector<std::string> mistakes;
  for (const absl::Status& mistake : loaded.mistakes) mistakes.emplace_back(mistake.message());
  for (const char* mistake : {"/bad/family.textproto: operation is not given", "0 of them are main",
                              "/bad/family.textproto: name is 'other'; it must be the folder's, 'bad'",
                              "/bad/family.textproto: sources has", "/worse/family.textproto: line 1, column 9",
                              "kernel family 'good' is in two directories", "cannot read kernel families in "}) {
    EXPECT_THAT(mistakes, ::testing::Contains(HasSubstr(mistake)));
  }
}

TEST(LoadEveryFamily, NamesEveryBadExpressionOnce) {
  const TestingFamilies families;
  families.Write("small/small.cu", "");
  families.Write(
      "small/family.textproto",
      absl::StrCat(absl::StrReplaceAll(Manifest(kLaunch), {{"ceil_div(seq_q, TILE)", "ceil_div(seq_q, TILES)"}}),
                   "lets { name: \"rows\" expr: \"TILE +\" } defines { name: \"X\" expr: \"rows * Y\" } ",
                   "constraints { expr: \"rows < 32\" reason: \"x\" } ",
                   "constraints { expr: \"WARPS < 32\" reason: \"x\" }"));
  std::vector<std::string> mistakes;
  for (const absl::Status& mistake : LoadEveryFamily({families.root()}).mistakes) {
    mistakes.emplace_back(mistake.message());
  }
  EXPECT_THAT(mistakes, ::testing::UnorderedElementsAre(HasSubstr("lets 'rows': expr is 'TILE +'"),
                                                        HasSubstr("defines 'X': expr is 'rows * Y': 'Y'"),
                                                        HasSubstr("grid_x is 'ceil_div(seq_q, TILES)': 'TILES'"),
                                                        HasSubstr("constraints[1].expr is 'WARPS < 32': 'WARPS'")));
}

TEST(LoadFamilies, FindsEveryFolderWithAManifestInOrder) {
  const TestingFamilies families;
  for (const char* name : {"b", "a"}) {
    families.Write(absl::StrCat(name, "/family.textproto"),
                   absl::StrCat("name: \"", name, "\" operation: OPERATION_KIND_ATTENTION_FORWARD ",
                                "backend: BACKEND_CUDA sources: \"x.cu\" launches { entry: \"run\" main: true }"));
    families.Write(absl::StrCat(name, "/x.cu"), "");
  }
  families.Write("common/a.cuh", "");
  const auto loaded = LoadFamilies(families.root());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->size(), 2u);
  EXPECT_EQ((*loaded)[0]->name(), "a");
  EXPECT_EQ((*loaded)[1]->name(), "b");
}

}  // namespace
}  // namespace attune::space
