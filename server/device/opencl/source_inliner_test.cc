#include "server/device/opencl/source_inliner.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::device::opencl {
namespace {

using ::testing::HasSubstr;

std::string Inline(std::initializer_list<std::pair<std::string, std::string>> files) {
  google::protobuf::RepeatedPtrField<worker::v1::SourceFile> sources;
  for (const auto& [path, text] : files) {
    worker::v1::SourceFile& source = *sources.Add();
    source.set_path(path);
    source.set_text(text);
  }
  absl::StatusOr<std::string> result = InlineIncludes(sources);
  return result.ok() ? *result : std::string(result.status().message());
}

TEST(SourceInliner, AnIncludeBecomesTheFilesTextWithLineMarkersAroundIt) {
  EXPECT_EQ(Inline({{"a.cl", "one\n  # include \"b.h\"\nthree"}, {"b.h", "two"}}),
            "#line 1 \"a.cl\"\none\n#line 1 \"b.h\"\ntwo\n#line 3 \"a.cl\"\nthree\n");
}

TEST(SourceInliner, AFileBesideTheIncludingOneIsPreferred) {
  const std::string text = Inline(
      {{"main.cl", "#include \"lib/a.h\""}, {"lib/a.h", "#include \"b.h\""}, {"b.h", "far"}, {"lib/b.h", "near"}});
  EXPECT_THAT(text, HasSubstr("near"));
  EXPECT_THAT(text, Not(HasSubstr("far")));
}

TEST(SourceInliner, PragmaOnceIsHonoured) {
  const std::string text = Inline({{"a.cl", "#include \"b.h\"\n#include \"b.h\""}, {"b.h", "#pragma once\nint x;"}});
  EXPECT_EQ(text.find("int x;"), text.rfind("int x;"));
  EXPECT_THAT(text, Not(HasSubstr("pragma")));
}

TEST(SourceInliner, WhatIsNotAmongTheSourcesIsLeftToTheCompiler) {
  EXPECT_THAT(Inline({{"a.cl", "#include \"missing.h\"\n#include <math.h>"}}),
              HasSubstr("#include \"missing.h\"\n#include <math.h>"));
}

TEST(SourceInliner, ACircleIsAnErrorThatNamesAFile) {
  EXPECT_THAT(Inline({{"a.cl", "#include \"b.h\""}, {"b.h", "#include \"a.cl\""}}), HasSubstr("not allowed"));
}

TEST(SourceInliner, NoSourceIsAnError) { EXPECT_THAT(Inline({}), HasSubstr("sources is empty")); }

}  // namespace
}  // namespace attune::device::opencl
