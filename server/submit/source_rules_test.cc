#include "server/submit/source_rules.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::submit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> OfCl(absl::string_view text) { return MistakesInSource("k.cl", text, v1::BACKEND_OPENCL); }
std::vector<std::string> OfCu(absl::string_view text) { return MistakesInSource("k.cu", text, v1::BACKEND_CUDA); }

TEST(SourceRules, TakeOrdinarySources) {
  EXPECT_THAT(OfCl("#include \"tile.h\"\n#include \"opencl/elements.h\"\n#define A 1\n__kernel void k() {}\n"),
              IsEmpty());
  EXPECT_THAT(OfCu("#include <cuda_fp16.h>\nasm volatile(\"mma.sync;\");\n#pragma unroll\n"), IsEmpty());
}

TEST(SourceRules, RefuseIncludesThatLeadElsewhere) {
  EXPECT_THAT(
      OfCl("int a;\n#include \"/etc/passwd\"\n"),
      ElementsAre("k.cl:2: #include '/etc/passwd' is not relative; allowed: names below the submission's folder"));
  EXPECT_THAT(
      OfCl("#include \"../secret.h\"\n"),
      ElementsAre("k.cl:1: #include '../secret.h' leads out of its folder; allowed: names below the submission's "
                  "folder"));
  EXPECT_THAT(OfCl("#include \"a/../../b.h\"\n"), ElementsAre(HasSubstr("leads out of its folder")));
  EXPECT_THAT(OfCu("#include </etc/passwd>\n"), ElementsAre(HasSubstr("is not relative")));
  EXPECT_THAT(OfCu("#include <../../etc/passwd>\n"), ElementsAre(HasSubstr("leads out of its folder")));
  EXPECT_THAT(OfCl("#include <stdio.h>\n"), ElementsAre(HasSubstr("in angle brackets; allowed in OpenCL")));
  EXPECT_THAT(OfCu("#define F \"/etc/passwd\"\n#include F\n"), ElementsAre(HasSubstr("k.cu:2: #include of 'F'")));
}

// However they are written.
TEST(SourceRules, SeeDirectivesAsThePreprocessorDoes) {
  EXPECT_THAT(OfCl("  #\tinclude\"/etc/passwd\"\n"), ElementsAre(HasSubstr("not relative")));
  EXPECT_THAT(OfCl("/* c\n */ # include \"/etc/passwd\"\n"), ElementsAre(HasSubstr("k.cl:1: ")));
  EXPECT_THAT(OfCl("#/**/include/**/\"/etc/passwd\"\n"), ElementsAre(HasSubstr("not relative")));
  EXPECT_THAT(OfCl("#incl\\\nude \"/etc/passwd\"\n\n#include \"../a\"\n"),
              ElementsAre(HasSubstr("k.cl:1: "), HasSubstr("k.cl:4: ")));
  EXPECT_THAT(OfCl("%:include \"/etc/passwd\"\n"), ElementsAre(HasSubstr("digraph")));
  EXPECT_THAT(OfCl("#include_next \"a.h\"\n"), ElementsAre(HasSubstr("#include_next is not allowed")));
  EXPECT_THAT(OfCl("#embed \"/etc/passwd\"\n"), ElementsAre(HasSubstr("#embed is not allowed")));
}

TEST(SourceRules, LeaveCommentsAndTextsAlone) {
  EXPECT_THAT(OfCl("// #include \"/etc/passwd\" \\\n#include \"/etc/passwd\"\n"), IsEmpty());
  EXPECT_THAT(OfCl("/*\n#include \"/etc/passwd\"\n*/\n"), IsEmpty());
  EXPECT_THAT(OfCu("const char* s = \"/* no comment\";\n#include \"/etc/passwd\"\n"),
              ElementsAre(HasSubstr("k.cu:2: ")));
  EXPECT_THAT(OfCl("int asmara; int my_asm;\n"), IsEmpty());
}

TEST(SourceRules, RefuseWhatReadsFilesAtCompileTime) {
  EXPECT_THAT(OfCu("asm(\".incbin \\\"/etc/passwd\\\"\");\n"), ElementsAre(HasSubstr(".incbin is not allowed")));
  EXPECT_THAT(OfCl("__asm__(\"nop\");\n"), ElementsAre(HasSubstr("__asm__ is not allowed")));
}

}  // namespace
}  // namespace attune::submit
