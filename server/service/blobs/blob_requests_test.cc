#include "server/service/blobs/blob_requests.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/service/limits.h"

namespace attune::service {
namespace {

using access::Principal;
using access::Role;
using ::testing::HasSubstr;

v1::PutBlobRequest SamplePut() {
  v1::PutBlobRequest request;
  request.set_namespace_("triton");
  request.set_key("K7");
  request.set_file("__grp__kernel.json");
  return request;
}

TEST(BlobRequests, ThatNameACacheAKeyAndAFilePass) {
  EXPECT_TRUE(Validate(SamplePut()).ok());
  v1::PutBlobRequest request = SamplePut();
  request.set_key("autotune/v2 \xC3\xA9");
  EXPECT_TRUE(Validate(request).ok()) << Validate(request);
}

TEST(BlobRequests, NameTheNamespaceThatIsNone) {
  for (const char* name : {"", "-x", "a b", "a/b"}) {
    v1::PutBlobRequest request = SamplePut();
    request.set_namespace_(name);
    EXPECT_THAT(std::string(Validate(request).message()), HasSubstr("namespace is '")) << name;
  }
  v1::PutBlobRequest request = SamplePut();
  request.set_namespace_(std::string(65, 'n'));
  EXPECT_EQ(Validate(request).code(), absl::StatusCode::kInvalidArgument);
}

TEST(BlobRequests, NameTheKeyThatIsNone) {
  v1::PutBlobRequest request = SamplePut();
  for (const char* key : {"", "a\nb", "\x7f"}) {
    request.set_key(key);
    EXPECT_THAT(std::string(Validate(request).message()), HasSubstr("key is ")) << key;
  }
}

// Clients write files of these names.
TEST(BlobRequests, NameTheFileThatWouldLeaveItsFolder) {
  for (const char* file : {"", ".", "..", "../x", "/etc/passwd", "a/b", "a\nb"}) {
    v1::PutBlobRequest request = SamplePut();
    request.set_file(file);
    EXPECT_THAT(std::string(Validate(request).message()), HasSubstr("file is ")) << file;
    v1::GetBlobsRequest get;
    get.set_namespace_("triton");
    get.set_key("K7");
    get.add_files("right");
    get.add_files(file);
    EXPECT_THAT(std::string(Validate(get).message()), HasSubstr("files[1] is ")) << file;
  }
}

TEST(BlobRequests, AskForAFileAtLeast) {
  v1::GetBlobsRequest request;
  request.set_namespace_("triton");
  request.set_key("K7");
  EXPECT_EQ(Validate(request).message(), "files has 0 entries; allowed: 1 to 64");
}

TEST(BlobRequests, HaveDataThatFitsIntoARequest) {
  v1::PutBlobRequest request = SamplePut();
  request.set_data(std::string(kMostBlobBytes, 'x'));
  EXPECT_TRUE(CheckLimits(request).ok()) << CheckLimits(request);
  EXPECT_LT(request.ByteSizeLong(), static_cast<size_t>(kMostRequestBytes));
  request.mutable_data()->push_back('x');
  EXPECT_EQ(CheckLimits(request).message(), "data has 4128769 bytes; allowed: at most 4128768");
}

TEST(Blobs, AreReadByTheirOwnerByAdminsAndBySharing) {
  v1::Blob blob;
  blob.set_principal("token:ci");
  EXPECT_TRUE(MayRead(blob, {"token:ci", Role::kReader}));
  EXPECT_TRUE(MayRead(blob, {"uid:0", Role::kAdmin}));
  EXPECT_FALSE(MayRead(blob, {"uid:1000", Role::kAuthor}));
  blob.set_shared(true);
  EXPECT_TRUE(MayRead(blob, {"loopback", Role::kReader}));
}

TEST(Blobs, AreListedToOthersThanAdminsOnlyAsTheyMayBeRead) {
  v1::ListBlobsRequest request;
  request.set_principal("self");
  request.set_namespace_("helion");
  const store::BlobFilter own = FilterFor(request, {"uid:1000", Role::kAuthor});
  EXPECT_EQ(own.principal, "uid:1000");
  EXPECT_EQ(own.cache, "helion");
  EXPECT_EQ(own.reader, "uid:1000");
  EXPECT_EQ(FilterFor(request, {"uid:0", Role::kAdmin}).reader, "");
  request.set_principal("token:ci");
  EXPECT_EQ(FilterFor(request, {"uid:1000", Role::kAuthor}).principal, "token:ci");
}

}  // namespace
}  // namespace attune::service
