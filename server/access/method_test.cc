#include "server/access/method.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "attune/v1/access.pb.h"
#include "attune/v1/blob.pb.h"
#include "attune/v1/fleet.pb.h"
#include "attune/v1/service.pb.h"
#include "gtest/gtest.h"
#include "server/access/principal.h"

namespace attune::access {
namespace {

std::vector<const google::protobuf::ServiceDescriptor*> Apis() {
  return {v1::PingRequest::descriptor()->file()->FindServiceByName("AttuneService"),
          v1::Blob::descriptor()->file()->FindServiceByName("BlobService"),
          v1::Token::descriptor()->file()->FindServiceByName("AccessService"),
          v1::Host::descriptor()->file()->FindServiceByName("FleetService")};
}

TEST(Methods, AreThoseOfTheServicesEachOnce) {
  std::set<std::string> api;
  for (const auto* service : Apis()) {
    for (int i = 0; i < service->method_count(); ++i) EXPECT_TRUE(api.insert(service->method(i)->name()).second);
  }
  std::set<std::string> table;
  for (const Method& method : kMethods)
    EXPECT_TRUE(table.emplace(std::string(method.name)).second) << method.name << " stands twice";
  EXPECT_EQ(table, api);
}

// By the names alone: whoever adds a method that changes something must say so in the table.
TEST(Methods, ThatOnlyReadAreForReaders) {
  for (const Method& method : kMethods) {
    bool reads = method.name == "Ping";
    for (const char* verb : {"Get", "List", "Plan", "Watch", "Preflight", "Explain", "Compare"}) {
      reads = reads || absl::StartsWith(method.name, verb);
    }
    EXPECT_EQ(reads, !method.changes) << method.name;
    EXPECT_GE(method.needs, method.changes ? Role::kTuner : Role::kReader) << method.name;
  }
}

TEST(Roles, MayDoWhatTheirMethodsNeedAndNoMore) {
  for (const Method& method : kMethods) {
    for (const Role role : kEveryRole) {
      const absl::Status status = CheckRole({"uid:7", role}, method);
      EXPECT_EQ(status.ok(), role >= method.needs) << method.name << " " << RoleName(role);
      if (status.ok()) continue;
      EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
      EXPECT_EQ(std::string(*status.GetPayload(kRoleHeldUrl)), RoleName(role));
      EXPECT_EQ(std::string(*status.GetPayload(kRoleNeededUrl)), RoleName(method.needs));
    }
  }
}

TEST(Roles, ARefusalNamesPrincipalRoleAndMethod) {
  EXPECT_EQ(CheckRole({"loopback", Role::kReader}, *MethodRow("Tune")).message(),
            "loopback has the role reader; Tune needs tuner");
}

TEST(Roles, AreReadByTheirNames) {
  for (const Role role : kEveryRole) EXPECT_EQ(*ParseRole(RoleName(role)), role);
  EXPECT_EQ(ParseRole("root").status().message(), "'root'; allowed: none, reader, tuner, author, admin");
}

}  // namespace
}  // namespace attune::access
