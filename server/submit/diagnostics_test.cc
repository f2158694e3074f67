#include "server/submit/diagnostics.h"

#include "gtest/gtest.h"

namespace attune::submit {
namespace {

std::vector<v1::Diagnostic> Of(absl::string_view log) { return DiagnosticsOf(log, "mine.cl", {"mine.cl", "tile.h"}); }

void ExpectIs(const v1::Diagnostic& diagnostic, absl::string_view path, int line, int column, absl::string_view text) {
  EXPECT_EQ(diagnostic.path(), path);
  EXPECT_EQ(diagnostic.line(), line);
  EXPECT_EQ(diagnostic.column(), column);
  EXPECT_EQ(diagnostic.text(), text);
}

TEST(Diagnostics, AreThoseOfClangAndPocl) {
  const auto clang =
      Of("/tmp/pocl/tempfile_a1.cl:12:5: error: use of undeclared identifier 'x'\n  x = 1;\n  ^\n"
         "/tmp/pocl/tile.h:3:1: fatal error: expected ';'\n2 errors generated.\n");
  ASSERT_EQ(clang.size(), 2U);
  ExpectIs(clang[0], "mine.cl", 12, 5, "use of undeclared identifier 'x'");
  ExpectIs(clang[1], "tile.h", 3, 1, "expected ';'");
  const auto pocl = Of("1 error generated.\nerror: /tmp/pocl/tempfile_a1.cl:7:9: use of undeclared identifier 'y'\n");
  ASSERT_EQ(pocl.size(), 1U);
  ExpectIs(pocl[0], "mine.cl", 7, 9, "use of undeclared identifier 'y'");
}

TEST(Diagnostics, AreThoseOfNvrtc) {
  const auto found = Of("mine.cl(12): error: identifier \"x\" is undefined\n\ntile.h(3): warning: unused\n");
  ASSERT_EQ(found.size(), 1U);
  ExpectIs(found[0], "mine.cl", 12, 0, "identifier \"x\" is undefined");
}

TEST(Diagnostics, AreFewAndTheWholeLogWhereThereIsNoLine) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += "a.cl:1:1: error: e\n";
  EXPECT_EQ(Of(many).size(), 10U);
  const auto whole = Of("ptxas fatal: out of memory\n");
  ASSERT_EQ(whole.size(), 1U);
  ExpectIs(whole[0], "", 0, 0, "ptxas fatal: out of memory");
}

}  // namespace
}  // namespace attune::submit
