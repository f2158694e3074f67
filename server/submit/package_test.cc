#include "server/submit/package.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/files.h"
#include "server/submit/limits.h"

namespace attune::submit {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kLibrary[] = ATTUNE_SOURCE_DIR "/kernels_src";
constexpr char kManifest[] = R"(
backend: BACKEND_OPENCL
sources: "kernel.cl"
parameters { name: "ROWS" values: [1, 2] binding: BINDING_COMPILE_TIME guess: 1 }
launches { entry: "attention" main: true grid_x: "seq_q" block_x: "ROWS" args { buffer: BUFFER_ROLE_Q } }
)";
constexpr char kSource[] = "#include \"tile.h\"\n__kernel void attention(__global half* q) {}\n";

Files FilesOf(const std::vector<std::pair<std::string, std::string>>& texts) {
  Files files;
  for (const auto& [path, text] : texts) {
    files.Add()->set_path(path);
    files.rbegin()->set_text(text);
  }
  return files;
}

Files Good() {
  return FilesOf({{"family.textproto", kManifest}, {"kernel.cl", kSource}, {"tile.h", "#define TILE 8\n"}});
}

std::string ErrorOf(const Files& files) {
  const auto family = FamilyOf(files, kLibrary);
  EXPECT_EQ(family.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(family.status().message());
}

TEST(Package, IsAFamilyNamedByItsContent) {
  const auto package = ReadPackage(Good());
  ASSERT_TRUE(package.ok()) << package.status();
  const auto family = FamilyOf(*package, kLibrary);
  ASSERT_TRUE(family.ok()) << family.status();
  EXPECT_EQ((*family)->name(), absl::StrCat("submitted_", package->content_hash.substr(0, 16)));
  ASSERT_EQ((*family)->sources.size(), 2U);
  EXPECT_EQ((*family)->sources[0].first, "kernel.cl");
  EXPECT_EQ((*family)->sources[1].first, "tile.h");
  EXPECT_EQ((*family)->manifest.operation(), v1::OPERATION_KIND_ATTENTION_FORWARD);
}

TEST(Package, HasTheSameHashWhateverTheOrderOfItsFiles) {
  Files files = Good();
  files.SwapElements(0, 2);
  EXPECT_EQ(ReadPackage(files)->content_hash, ReadPackage(Good())->content_hash);
  files.Mutable(0)->set_text("#define TILE 9\n");
  EXPECT_NE(ReadPackage(files)->content_hash, ReadPackage(Good())->content_hash);
}

TEST(Package, IsNeverTakenForAnotherFamily) {
  Files files = Good();
  files.Mutable(0)->set_text(absl::StrCat("name: \"attention_mma\" guess_precedence: 9 ", kManifest));
  const auto package = ReadPackage(files);
  ASSERT_TRUE(package.ok()) << package.status();
  EXPECT_THAT(package->manifest.name(), StartsWith("submitted_"));
  EXPECT_EQ(package->manifest.guess_precedence(), 0);
}

TEST(Package, MayBeOneFileWithItsManifestInTheCommentAtItsHead) {
  const std::string header =
      "/* attune\n"
      "launches { entry: \"k\" main: true grid_x: \"seq_q\" args { buffer: BUFFER_ROLE_Q } }\n*/\n";
  const auto family = FamilyOf(FilesOf({{"mine.cl", header + "__kernel void k(__global half* q) {}\n"}}), kLibrary);
  ASSERT_TRUE(family.ok()) << family.status();
  EXPECT_EQ((*family)->manifest.backend(), v1::BACKEND_OPENCL);
  EXPECT_EQ((*family)->sources[0].first, "mine.cl");
  const auto cuda = FamilyOf(FilesOf({{"mine.cu", header}}), kLibrary);
  ASSERT_TRUE(cuda.ok()) << cuda.status();
  EXPECT_EQ((*cuda)->manifest.backend(), v1::BACKEND_CUDA);
  EXPECT_THAT(ErrorOf(FilesOf({{"mine.cl", "\n/* attune\nlaunches { entry }\n*/"}})), StartsWith("mine.cl: line 3, "));
  EXPECT_THAT(ErrorOf(FilesOf({{"mine.cl", "int a;"}})), HasSubstr("does not begin with a comment '/* attune'"));
  EXPECT_THAT(ErrorOf(FilesOf({{"mine.txt", header}})), HasSubstr("neither a .cl nor a .cu"));
  EXPECT_THAT(ErrorOf(FilesOf({{"a.cl", header}, {"b.cl", ""}})), HasSubstr("files has no family.textproto"));
}

TEST(Package, NamesEachLimitThatIsHit) {
  EXPECT_THAT(ErrorOf(Files()), HasSubstr("files has 0 entries; allowed: 1 to 32"));
  Files many = Good();
  for (int i = 0; i < kMostFiles; ++i) many.Add()->set_path(absl::StrCat("f", i));
  EXPECT_THAT(ErrorOf(many), HasSubstr("files has 35 entries; allowed: 1 to 32"));
  Files large = Good();
  large.Mutable(1)->set_text(std::string(kMostFileBytes + 1, ' '));
  EXPECT_THAT(ErrorOf(large), HasSubstr("kernel.cl has 131073 bytes; allowed: at most 131072"));
  large.Mutable(1)->set_text(std::string(kMostFileBytes, ' '));
  large.Mutable(2)->set_text(std::string(kMostFileBytes, ' '));
  EXPECT_THAT(ErrorOf(large), HasSubstr("bytes; allowed: at most 262144"));
  const auto manifest = [](absl::string_view more) {
    Files files = Good();
    files.Mutable(0)->set_text(absl::StrCat(kManifest, more));
    return ErrorOf(files);
  };
  EXPECT_THAT(manifest(std::string(40'000, ' ')), HasSubstr("the manifest has 40"));
  EXPECT_THAT(manifest("compile_options: \"-I/etc\""),
              HasSubstr("compile_options has '-I/etc'; allowed: -cl-... and -D"));
  EXPECT_THAT(manifest("compile_options: \"-DA -include /etc/passwd\""), HasSubstr("compile_options has"));
  EXPECT_THAT(manifest("role: ROLE_REFERENCE"), HasSubstr("role is ROLE_REFERENCE; allowed is ROLE_SEARCH"));
  std::string parameters;
  for (int i = 0; i < kMostParameters; ++i) {
    absl::StrAppend(&parameters, "parameters { name: \"P", i, "\" values: 1 binding: BINDING_LAUNCH_TIME guess: 1 }");
  }
  EXPECT_THAT(manifest(parameters), HasSubstr("parameters has 33 entries; allowed: at most 32"));
}

TEST(Package, LimitsScratchByAConstraint) {
  Files files = Good();
  files.Mutable(0)->set_text(absl::StrCat(kManifest, "scratch { name: \"part\" bytes: \"4 * seq_q\" }"));
  const auto package = ReadPackage(files);
  ASSERT_TRUE(package.ok()) << package.status();
  ASSERT_EQ(package->manifest.constraints_size(), 1);
  EXPECT_EQ(package->manifest.constraints(0).expr(), "(4 * seq_q) <= 1073741824");
  EXPECT_TRUE(FamilyOf(*package, kLibrary).ok());
}

TEST(Package, TakesNoPathThatLeadsElsewhere) {
  for (const char* path : {"/etc/passwd", "../a.h", "a/../b.h", "./a.h", "a//b.h", "", "a b.h", "a\\b.h"}) {
    Files files = Good();
    files.Add()->set_path(path);
    EXPECT_THAT(ErrorOf(files), HasSubstr("files: path is")) << path;
  }
  Files twice = Good();
  twice.Add()->set_path("tile.h");
  EXPECT_THAT(ErrorOf(twice), HasSubstr("tile.h is there twice"));
}

TEST(Package, ReadsNothingOfTheHostButTheLibraries) {
  const auto with = [](absl::string_view include) {
    Files files = Good();
    files.Mutable(1)->set_text(absl::StrCat("#include \"", include, "\"\n", kSource));
    return files;
  };
  EXPECT_TRUE(FamilyOf(with("opencl/elements.h"), kLibrary).ok());
  EXPECT_THAT(ErrorOf(with("attention_opencl/attention.cl")), HasSubstr("attention_opencl/attention.cl"));
  EXPECT_THAT(ErrorOf(with("nowhere.h")), HasSubstr("nowhere.h"));
  Files source = Good();
  source.Mutable(0)->set_text(absl::StrReplaceAll(kManifest, {{"kernel.cl", "//attention_opencl/attention.cl"}}));
  EXPECT_THAT(ErrorOf(source), HasSubstr("sources has '//attention_opencl/attention.cl'"));
  source.Mutable(0)->set_text(absl::StrReplaceAll(kManifest, {{"kernel.cl", "../../../etc/passwd"}}));
  EXPECT_THAT(ErrorOf(source), HasSubstr("sources has '../../../etc/passwd'"));
}

TEST(Package, NamesEveryMistakeOfItsManifest) {
  Files files = Good();
  files.Mutable(0)->set_text(absl::StrReplaceAll(kManifest, {{"seq_q", "seq_r"}, {"kernel.cl", "kernels.cl"}}));
  EXPECT_THAT(ErrorOf(files), HasSubstr("seq_r"));
  EXPECT_THAT(ErrorOf(files), HasSubstr("sources has 'kernels.cl'"));
}

}  // namespace
}  // namespace attune::submit
