#include "client/dashboard/pages.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/cpp/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::dashboard {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Pages, EveryFileOfTheFolderIsEmbeddedByteByByte) {
  const Pages pages("");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ATTUNE_SOURCE_DIR "/client/dashboard/web")) {
    const ContentPtr page = pages.Find(absl::StrCat("/", entry.path().filename().string()));
    ASSERT_NE(page, nullptr) << entry.path();
    EXPECT_EQ(page->plain, *ReadFile(entry.path())) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(Pages, TheFirstPageIsIndexHtml) {
  const Pages pages("");
  EXPECT_EQ(pages.Find("/"), pages.Find("/index.html"));
  EXPECT_EQ(pages.Find("/")->type, "text/html; charset=utf-8");
}

TEST(Pages, TheNoticeNamesTheVersionAndHashOfWhatIsServed) {
  const Pages pages("");
  const ContentPtr chart = pages.Find("/chart.min.js");
  EXPECT_EQ(chart->type, "text/javascript; charset=utf-8");
  EXPECT_THAT(chart->plain, StartsWith("/*!\n * Chart.js v3."));
  const std::string notice = pages.Find("/NOTICE")->plain;
  EXPECT_THAT(notice, HasSubstr("MIT License"));
  EXPECT_THAT(notice, HasSubstr("Permission is hereby granted, free of charge"));
  EXPECT_THAT(notice, HasSubstr("Chart.js 3."));
  const std::string hash = chart->etag.substr(3, 32);  // of W/"..."
  EXPECT_THAT(notice, HasSubstr(absl::StrCat("SHA-256 of chart.min.js: ", hash)));
}

TEST(Pages, NothingButThoseFilesCanBeNamed) {
  const Pages embedded("");
  for (const char* path :
       {"", "?", "/nothing.js", "//", "/../CMakeLists.txt", "/web/index.html", "/%2e%2e/CMakeLists.txt", "/.", "/.."}) {
    EXPECT_EQ(embedded.Find(path), nullptr) << path;
  }
}

TEST(Pages, AFolderIsReadAtEachRequest) {
  const std::string root = absl::StrCat(::testing::TempDir(), "/attune-pages-test-", getpid());
  std::filesystem::create_directories(root);
  const Pages pages(root);
  EXPECT_EQ(pages.Find("/"), nullptr);
  std::ofstream(root + "/index.html") << "one";
  EXPECT_EQ(pages.Find("/")->plain, "one");
  const std::string etag = pages.Find("/")->etag;
  std::ofstream(root + "/index.html") << "two";
  EXPECT_EQ(pages.Find("/")->plain, "two");
  EXPECT_NE(pages.Find("/")->etag, etag);
  EXPECT_NE(pages.Find("/chart.min.js"), nullptr);
  std::ofstream(root + "/.hidden") << "x";
  for (const char* path : {"/.hidden", "/..", "/../passwd", "//etc/passwd", "/%2e%2e/x"}) {
    EXPECT_EQ(pages.Find(path), nullptr) << path;
  }
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace attune::dashboard
