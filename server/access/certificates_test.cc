#include "server/access/certificates.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::access {
namespace {

using ::testing::HasSubstr;

TEST(Certificates, HaveTheRoleThatIsAssignedToTheirNameOrTheCommonOne) {
  Certificates certificates(Role::kReader);
  ASSERT_TRUE(certificates.Assign({"nightly=tuner", "a=b=admin", "gone=none"}).ok());
  EXPECT_EQ(certificates.Of("nightly")->role, Role::kTuner);
  EXPECT_EQ(certificates.Of("nightly")->name, "cert:nightly");
  EXPECT_EQ(certificates.Of("a=b")->role, Role::kAdmin);
  EXPECT_EQ(certificates.Of("gone")->role, Role::kNone);
  EXPECT_EQ(certificates.Of("other")->role, Role::kReader);
  EXPECT_EQ(certificates.Of("nightl")->role, Role::kReader);
  EXPECT_EQ(certificates.Of(absl::string_view("nightly\0", 8))->role, Role::kReader);
}

TEST(Certificates, WithoutANameAreNobodys) {
  EXPECT_TRUE(absl::IsUnauthenticated(Certificates(Role::kAdmin).Of("").status()));
}

TEST(Certificates, SayWhatIsWrongWithAnEntry) {
  Certificates certificates(Role::kReader);
  const auto error = [&certificates](const char* entry) { return std::string(certificates.Assign({entry}).message()); };
  EXPECT_EQ(error("nightly=boss"), "'nightly=boss' has the role 'boss'; allowed: none, reader, tuner, author, admin");
  EXPECT_THAT(error("nightly"), HasSubstr("'nightly' names no certificate; give NAME=ROLE"));
  EXPECT_THAT(error("=tuner"), HasSubstr("names no certificate"));
}

}  // namespace
}  // namespace attune::access
