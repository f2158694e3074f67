// The service over a server: principals are tokens, the store is in memory.
#include "server/service/blobs/blob_service.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/access/tokens.h"
#include "server/service/limits.h"
#include "server/service/server.h"
#include "server/store/testing/fake_blobs.h"

namespace attune::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BlobServiceTest : public ::testing::Test {
 protected:
  BlobServiceTest() {
    auto server = Server::Start({"localhost:0"}, {&service_}, {.tokens = tokens_.get()});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::BlobService::NewStub(grpc::CreateChannel(server_->addresses()[0], grpc::InsecureChannelCredentials()));
    for (const char* author : {"ci", "eve"}) secrets_[absl::StrCat("token:", author)] = Token(author, "author");
    secrets_["token:boss"] = Token("boss", "admin");
  }
  ~BlobServiceTest() override {
    server_->Shutdown(absl::Seconds(5));
    std::filesystem::remove(path_);
  }

  // As `who`; "loopback" brings no token.
  template <typename Request, typename Response>
  grpc::Status Call(const std::string& who,
                    grpc::Status (v1::BlobService::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    if (secrets_.contains(who)) context.AddMetadata("authorization", "Bearer " + secrets_[who]);
    return ((*stub_).*method)(&context, request, response);
  }

  grpc::Status Put(const std::string& who, const std::string& file, const std::string& data, bool shared = false) {
    v1::PutBlobRequest request;
    request.set_namespace_("triton");
    request.set_key("K7");
    request.set_file(file);
    request.set_data(data);
    request.set_shared(shared);
    v1::Blob put;
    return Call(who, &v1::BlobService::Stub::PutBlob, request, &put);
  }

  // "owner/file=data" of each; those left out as "left out file".
  std::vector<std::string> Get(const std::string& who, const std::vector<std::string>& files,
                               const std::vector<std::string>& principals = {}) {
    v1::GetBlobsRequest request;
    request.set_namespace_("triton");
    request.set_key("K7");
    for (const std::string& file : files) request.add_files(file);
    for (const std::string& principal : principals) request.add_principals(principal);
    v1::GetBlobsResponse response;
    const grpc::Status status = Call(who, &v1::BlobService::Stub::GetBlobs, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<std::string> got;
    for (const v1::Blob& blob : response.blobs()) {
      got.push_back(absl::StrCat(blob.principal(), "/", blob.file(), "=", blob.data().substr(0, 10)));
    }
    for (const std::string& file : response.left_out()) got.push_back("left out " + file);
    return got;
  }

  v1::ListBlobsResponse List(const std::string& who, int page_size = 0, const std::string& token = "") {
    v1::ListBlobsRequest request;
    request.set_page_size(page_size);
    request.set_page_token(token);
    v1::ListBlobsResponse response;
    const grpc::Status status = Call(who, &v1::BlobService::Stub::ListBlobs, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  grpc::Status Delete(const std::string& who, const std::string& principal, v1::DeleteBlobsResponse* response) {
    v1::DeleteBlobsRequest request;
    request.set_principal(principal);
    return Call(who, &v1::BlobService::Stub::DeleteBlobs, request, response);
  }

  store::FakeBlobs blobs_;

 private:
  std::string Token(const std::string& id, const std::string& role) {
    v1::CreateTokenRequest request;
    request.set_id(id);
    request.set_role(role);
    return tokens_->Create(request, "test", absl::Now())->secret();
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/blob_tokens_", getpid());
  std::unique_ptr<access::Tokens> tokens_ = *access::Tokens::Open(path_);
  std::map<std::string, std::string> secrets_;
  BlobServiceImpl service_{&blobs_};
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::BlobService::Stub> stub_;
};

TEST_F(BlobServiceTest, GivesBackWhatItsOwnerHasPut) {
  ASSERT_TRUE(Put("token:ci", "k.cubin", "code").ok());
  ASSERT_TRUE(Put("token:ci", "k.json", "{}").ok());
  EXPECT_THAT(Get("token:ci", {"k.json", "k.cubin"}), ElementsAre("token:ci/k.json={}", "token:ci/k.cubin=code"));
  EXPECT_THAT(Get("token:ci", {"k.json", "none"}), IsEmpty()) << "one file of several is of no use";
}

TEST_F(BlobServiceTest, TakesNothingFromWhoMayNotBringCode) {
  const grpc::Status status = Put("loopback", "k.cubin", "code");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("PutBlob needs author"));
  EXPECT_THAT(List("token:boss").blobs(), IsEmpty());
}

// Who could put a file into another's place would have its code run there.
TEST_F(BlobServiceTest, KeepsAuthorsApart) {
  ASSERT_TRUE(Put("token:ci", "k.cubin", "code", /*shared=*/true).ok());
  ASSERT_TRUE(Put("token:eve", "k.cubin", "evil", /*shared=*/true).ok());
  EXPECT_THAT(Get("token:ci", {"k.cubin"}), ElementsAre("token:ci/k.cubin=code"));
  EXPECT_THAT(Get("token:ci", {"k.cubin"}, {"self"}), ElementsAre("token:ci/k.cubin=code"));
  EXPECT_THAT(Get("loopback", {"k.cubin"}), IsEmpty()) << "nobody is given another's who does not name whose";
  EXPECT_THAT(Get("loopback", {"k.cubin"}, {"token:ci"}), ElementsAre("token:ci/k.cubin=code"));
}

TEST_F(BlobServiceTest, GivesOthersOnlyWhatIsShared) {
  ASSERT_TRUE(Put("token:ci", "own", "1").ok());
  ASSERT_TRUE(Put("token:ci", "shared", "2", /*shared=*/true).ok());
  EXPECT_THAT(Get("token:eve", {"own"}, {"token:ci"}), IsEmpty());
  EXPECT_THAT(Get("token:eve", {"shared", "own"}, {"token:ci"}), IsEmpty());
  EXPECT_THAT(Get("token:eve", {"shared"}, {"token:ci"}), ElementsAre("token:ci/shared=2"));
  EXPECT_THAT(Get("token:boss", {"own"}, {"token:ci"}), ElementsAre("token:ci/own=1"));
  EXPECT_EQ(List("token:eve").blobs_size(), 1);
  EXPECT_EQ(List("token:eve").totals(0).blobs(), 1);
  EXPECT_EQ(List("token:boss").blobs_size(), 2);
}

// Two halves of one compilation must not be of two principals.
TEST_F(BlobServiceTest, GivesAllFilesOfTheFirstWhoHasThemAll) {
  ASSERT_TRUE(Put("token:eve", "a", "eve's").ok());
  for (const char* file : {"a", "b"}) ASSERT_TRUE(Put("token:ci", file, "ci's", /*shared=*/true).ok());
  EXPECT_THAT(Get("token:eve", {"a", "b"}, {"self", "token:ci"}), ElementsAre("token:ci/a=ci's", "token:ci/b=ci's"));
  EXPECT_THAT(Get("token:eve", {"a"}, {"self", "token:ci"}), ElementsAre("token:eve/a=eve's"));
  EXPECT_THAT(Get("token:eve", {"a"}, {"token:ci", "self"}), ElementsAre("token:ci/a=ci's"));
}

TEST_F(BlobServiceTest, LeavesOutWhatDoesNotFitIntoTheAnswerAndNamesIt) {
  const std::string large(kMostBlobBytes / 2 + 1, 'x');
  for (const char* file : {"a", "b"}) ASSERT_TRUE(Put("token:ci", file, large).ok());
  ASSERT_TRUE(Put("token:ci", "c", "small").ok());
  EXPECT_THAT(Get("token:ci", {"a", "b", "c"}), ElementsAre("token:ci/a=xxxxxxxxxx", "token:ci/c=small", "left out b"));
  ASSERT_TRUE(Put("token:ci", "largest", std::string(kMostBlobBytes, 'y')).ok());
  EXPECT_THAT(Get("token:ci", {"largest"}), ElementsAre("token:ci/largest=yyyyyyyyyy"));
  EXPECT_EQ(Put("token:ci", "larger", std::string(kMostBlobBytes + 1, 'y')).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(BlobServiceTest, ListsByPagesWithTotalsOnTheFirst) {
  for (const char* file : {"a", "b", "c"}) ASSERT_TRUE(Put("token:ci", file, "1234").ok());
  const v1::ListBlobsResponse first = List("token:ci", 2);
  EXPECT_EQ(first.blobs_size(), 2);
  EXPECT_EQ(first.blobs(0).file(), "c");
  EXPECT_THAT(first.blobs(0).data(), IsEmpty());
  ASSERT_EQ(first.totals_size(), 1);
  EXPECT_EQ(first.totals(0).bytes(), 12);
  EXPECT_EQ(first.limit_bytes(), store::kDefaultBlobLimit);
  const v1::ListBlobsResponse second = List("token:ci", 2, first.next_page_token());
  EXPECT_EQ(second.blobs_size(), 1);
  EXPECT_EQ(second.totals_size(), 0);
}

TEST_F(BlobServiceTest, DeletesTheCallersOwnAndForAdminsAnothers) {
  ASSERT_TRUE(Put("token:ci", "a", "1234").ok());
  ASSERT_TRUE(Put("token:eve", "a", "12").ok());
  v1::DeleteBlobsResponse deleted;
  const grpc::Status refused = Delete("token:eve", "token:ci", &deleted);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("token:eve has the role author; to delete blobs of 'token:ci'"));
  ASSERT_TRUE(Delete("token:eve", "", &deleted).ok());
  EXPECT_EQ(deleted.blobs(), 1);
  EXPECT_EQ(deleted.bytes(), 2);
  EXPECT_EQ(List("token:boss").blobs_size(), 1);
  ASSERT_TRUE(Delete("token:boss", "token:ci", &deleted).ok());
  EXPECT_EQ(deleted.bytes(), 4);
  EXPECT_THAT(List("token:boss").blobs(), IsEmpty());
}

TEST_F(BlobServiceTest, SaysThatItKeepsNone) {
  blobs_.SetLimit(0);
  const grpc::Status status = Put("token:ci", "a", "1");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("--blob_limit=0"));
}

}  // namespace
}  // namespace attune::service
