#include "client/dashboard/api_table.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "client/cpp/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::dashboard {
namespace {

using ::testing::HasSubstr;

TEST(ApiResources, EachAsksTheMethodThatItNames) {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  const auto* service = pool->FindServiceByName("attune.v1.AttuneService");
  const auto* fleet = pool->FindServiceByName("attune.v1.FleetService");
  ASSERT_NE(service, nullptr);
  ASSERT_NE(fleet, nullptr);
  std::set<absl::string_view> names;
  for (const ApiResource& resource : ApiResources()) {
    EXPECT_TRUE(names.insert(resource.name).second) << resource.name;
    const auto* method = service->FindMethodByName(std::string(resource.method));
    if (method == nullptr) method = fleet->FindMethodByName(std::string(resource.method));
    ASSERT_NE(method, nullptr) << resource.method;
    EXPECT_EQ(method->input_type(), resource.request->GetDescriptor()) << resource.method;
  }
}

TEST(ApiResources, OnlyRead) {
  for (const ApiResource& resource : ApiResources()) {
    EXPECT_TRUE(absl::StartsWith(resource.method, "List") || absl::StartsWith(resource.method, "Get") ||
                resource.method == "Explain" || resource.method == "CompareTimes")
        << resource.method;
  }
}

TEST(ApiResources, AreThoseOfTheDocumentation) {
  const auto docs = ReadFile(ATTUNE_SOURCE_DIR "/docs/dashboard.md");
  ASSERT_TRUE(docs.ok()) << docs.status();
  size_t rows = 0;
  for (size_t at = 0; (at = docs->find("\n| `/api/", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, ApiResources().size() + 1);  // and /api/status
  for (const ApiResource& resource : ApiResources()) {
    EXPECT_THAT(*docs, HasSubstr(absl::StrCat("\n| `/api/", resource.name, "` | `", resource.method, "` |")));
  }
}

}  // namespace
}  // namespace attune::dashboard
