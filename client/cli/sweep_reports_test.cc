#include "client/cli/sweep_reports.h"

#include <tinyxml2.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Report = v1::SweepReport;

Report::Row& Add(Report& report, const char* problem, Report::Outcome outcome, double before = 0, double after = 0) {
  Report::Row& row = *report.add_rows();
  row.set_problem(problem);
  row.set_outcome(outcome);
  row.set_before_us(before);
  row.set_after_us(after);
  row.set_device_id("cuda:0");
  row.mutable_working_time()->set_seconds(2);
  return row;
}

// One row of each outcome.
Report OfEach() {
  Report report;
  report.set_title("nightly <&>");
  report.set_device_id("cuda:0,cuda:1");
  Add(report, "b1.h1.q1.d64.f16", Report::OUTCOME_NEW, 0, 9);
  Add(report, "b2.h1.q1.d64.f16", Report::OUTCOME_SAME, 40, 40.1);
  Add(report, "b3.h1.q1.d64.f16", Report::OUTCOME_FASTER, 40, 30);
  Report::Row& slower = Add(report, "b4.h1.q1.d64.f16", Report::OUTCOME_SLOWER, 40, 42);
  slower.set_variant("tiles:BLOCK=32");
  slower.set_detail("re-timed in 3 cycles");
  Add(report, "b5.h1.q1.d64.f16", Report::OUTCOME_FAILED).set_detail("line one\nline two <b> 100 %");
  Add(report, "b6.h1.q1.d64.f16", Report::OUTCOME_AMBIGUOUS, 40, 41);
  Add(report, "b7.h1.q1.d64.f16", Report::OUTCOME_SKIPPED).clear_device_id();
  return report;
}

TEST(JUnitText, HasACaseForEachProblemAndCountsThem) {
  tinyxml2::XMLDocument document;
  const std::string text = JUnitText(OfEach());
  ASSERT_EQ(document.Parse(text.c_str()), tinyxml2::XML_SUCCESS) << text;
  const tinyxml2::XMLElement& suite = *document.RootElement();
  EXPECT_STREQ(suite.Attribute("name"), "nightly <&>");
  EXPECT_EQ(suite.IntAttribute("tests"), 7);
  EXPECT_EQ(suite.IntAttribute("failures"), 1);
  EXPECT_EQ(suite.IntAttribute("errors"), 1);
  EXPECT_EQ(suite.IntAttribute("skipped"), 2);
  EXPECT_STREQ(suite.Attribute("time"), "14.000");
  std::vector<std::string> inside;
  for (const auto* one = suite.FirstChildElement("testcase"); one != nullptr; one = one->NextSiblingElement()) {
    const tinyxml2::XMLElement* const outcome = one->FirstChildElement();
    inside.emplace_back(outcome == nullptr ? "" : outcome->Name());
  }
  EXPECT_THAT(inside, ElementsAre("", "", "", "failure", "error", "skipped", "skipped"));
}

TEST(JUnitText, AFailureSaysByHowMuchAndHowToTimeItAgain) {
  tinyxml2::XMLDocument document;
  ASSERT_EQ(document.Parse(JUnitText(OfEach()).c_str()), tinyxml2::XML_SUCCESS);
  const tinyxml2::XMLElement* one = document.RootElement()->FirstChildElement("testcase");
  while (one->FirstChildElement("failure") == nullptr) one = one->NextSiblingElement();
  EXPECT_STREQ(one->Attribute("name"), "b4.h1.q1.d64.f16");
  EXPECT_STREQ(one->Attribute("classname"), "attune.cuda:0");
  const tinyxml2::XMLElement& failure = *one->FirstChildElement("failure");
  EXPECT_STREQ(failure.Attribute("type"), "SLOWER");
  EXPECT_STREQ(failure.Attribute("message"), "1.050x the time: 40.00 us before, 42.00 us now");
  EXPECT_STREQ(failure.GetText(),
               "re-timed in 3 cycles\nto time it again: attune evaluate b4.h1.q1.d64.f16 tiles:BLOCK=32");
}

TEST(JUnitText, WhatXmlCannotHoldIsEscaped) {
  Report report;
  Add(report, "b1.h1.q1.d64.f16", Report::OUTCOME_FAILED).set_detail(std::string("bell \a and \x1b[31m", 15));
  tinyxml2::XMLDocument document;
  const std::string text = JUnitText(report);
  EXPECT_EQ(document.Parse(text.c_str()), tinyxml2::XML_SUCCESS);
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
}

TEST(GitHubAnnotations, AreErrorsWarningsAndOneNotice) {
  EXPECT_THAT(
      GitHubAnnotations(OfEach()),
      ElementsAre(
          "::error title=SLOWER b4.h1.q1.d64.f16::1.050x the time: 40.00 us before, 42.00 us now; re-timed in 3 "
          "cycles",
          "::error title=FAILED b5.h1.q1.d64.f16::line one%0Aline two <b> 100 %25",
          "::warning title=AMBIGUOUS b6.h1.q1.d64.f16::1.025x the time: 40.00 us before, 41.00 us now",
          "::notice title=SKIPPED::1 problem lay beyond the sweep's total time"));
  EXPECT_THAT(GitHubAnnotations(Report()), IsEmpty());
}

TEST(GitHubAnnotations, NoTextEndsATitleOrBeginsACommand) {
  Report report;
  Add(report, "b1::error title=x,y\n::set-env", Report::OUTCOME_FAILED);
  const std::vector<std::string> lines = GitHubAnnotations(report);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("title=FAILED b1%3A%3Aerror title=x%2Cy%0A%3A%3Aset-env::FAILED"));
}

}  // namespace
}  // namespace attune::cli
