// What a database holds as serialized messages, pinned: testdata/stored_messages.txt lists every field and every enum
// value in reach of them. A field that goes, moves or changes its type makes databases unreadable, and one that comes
// is stored from then on: both are decisions, never side effects of a change of the API.
#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attune/v1/fleet.pb.h"
#include "attune/v1/profile.pb.h"
#include "attune/v1/profiling.pb.h"
#include "attune/v1/retiming.pb.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/submission.pb.h"
#include "attune/v1/sweep.pb.h"
#include "attune/worker/v1/worker.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

namespace attune::store {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// The messages in columns of the database, in the order of docs/store.md.
std::vector<const Descriptor*> Stored() {
  return {v1::Trial::descriptor(),
          v1::Incumbent::descriptor(),
          v1::Baseline::descriptor(),
          v1::Operation::descriptor(),
          v1::Retiming::descriptor(),
          v1::TuneRequest::descriptor(),
          v1::EvaluateVariantRequest::descriptor(),
          v1::SweepRequest::descriptor(),
          v1::SubmitRequest::descriptor(),
          v1::Submission::descriptor(),
          v1::ProfileRequest::descriptor(),
          v1::SanitizeRequest::descriptor(),
          v1::Profile::descriptor(),
          v1::Sanitizing::descriptor(),
          v1::Host::descriptor(),
          worker::v1::CompileResponse::Entry::descriptor()};
}

class Lines {
 public:
  void Add(const Descriptor& message) {
    if (!absl::StartsWith(message.full_name(), "attune.") || !seen_.insert(message.full_name()).second) return;
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      std::string type = field.type_name();
      if (field.message_type() != nullptr) type = field.message_type()->full_name();
      if (field.enum_type() != nullptr) type = field.enum_type()->full_name();
      lines_.insert(absl::StrCat(message.full_name(), " ", field.number(), " ", field.name(), ": ",
                                 field.is_repeated() ? "repeated " : "", type));
      if (field.message_type() != nullptr) Add(*field.message_type());
      if (field.enum_type() != nullptr) Add(*field.enum_type());
    }
  }

  std::set<std::string> Take() { return std::move(lines_); }

 private:
  void Add(const EnumDescriptor& type) {
    if (!absl::StartsWith(type.full_name(), "attune.")) return;
    for (int i = 0; i < type.value_count(); ++i) {
      lines_.insert(absl::StrCat(type.full_name(), " = ", type.value(i)->number(), " ", type.value(i)->name()));
    }
  }

  std::set<std::string> seen_;
  std::set<std::string> lines_;
};

std::set<std::string> Today() {
  Lines lines;
  for (const Descriptor* message : Stored()) lines.Add(*message);
  return lines.Take();
}

std::set<std::string> Pinned() {
  std::ifstream file(ATTUNE_SOURCE_DIR "/server/store/testdata/stored_messages.txt");
  EXPECT_TRUE(file.good());
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.insert(line);
  }
  return lines;
}

std::string Without(const std::set<std::string>& lines, const std::set<std::string>& others) {
  std::vector<std::string> left;
  std::set_difference(lines.begin(), lines.end(), others.begin(), others.end(), std::back_inserter(left));
  return absl::StrJoin(left, "\n");
}

TEST(StoredMessages, NothingThatDatabasesHoldIsGoneOrChanged) {
  EXPECT_EQ(Without(Pinned(), Today()), "") << "databases hold these: give a new field a new number and name instead";
}

TEST(StoredMessages, WhatIsStoredFromNowOnIsListed) {
  EXPECT_EQ(Without(Today(), Pinned()), "")
      << "these are stored from now on: add them to testdata/stored_messages.txt, if they are to be";
}

}  // namespace
}  // namespace attune::store
