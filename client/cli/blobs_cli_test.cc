// attune blobs.
#include "client/cli/testing/fake_world.h"
#include "client/testing/fake_blob_service.h"
#include "gmock/gmock.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;

class BlobsCliTest : public CliTest {
 protected:
  BlobsCliTest() {
    server = std::make_unique<attune::testing::RunningServer>(&blobs_);
    variables["ATTUNE_SERVER"] = server->address();
  }
  ~BlobsCliTest() override { server.reset(); }

  attune::testing::FakeBlobService blobs_;
};

TEST_F(BlobsCliTest, AreListedPageAfterPage) {
  ASSERT_EQ(Run({"blobs", "--limit", "0", "--namespace", "triton", "--key", "KKSUUFXW", "--principal", "self"}), 0)
      << err;
  EXPECT_THAT(out, HasSubstr("kernel.cubin"));
  EXPECT_THAT(out, HasSubstr("20 KiB"));
  EXPECT_THAT(out, HasSubstr("uid:1000"));
  EXPECT_EQ(blobs_.last_list().namespace_(), "triton");
  EXPECT_EQ(blobs_.last_list().key(), "KKSUUFXW");
  EXPECT_EQ(blobs_.last_list().principal(), "self");
  EXPECT_EQ(blobs_.last_list().page_token(), "more");
  ASSERT_EQ(Run({"blobs", "list", "--limit", "1", "--format=json"}), 0) << err;
  ASSERT_EQ(JsonLines().size(), 1U);
  EXPECT_EQ(JsonLines()[0],
            Json::parse(R"({"type": "blob", "principal": "token:ci", "namespace": "triton", "key": "KKSUUFXW",
                            "file": "kernel.cubin", "shared": true, "bytes": 20480, "sha256": "4f0c",
                            "create_time": "2027-01-15T08:00:00Z", "use_time": "2027-01-15T09:00:00Z"})"));
}

TEST_F(BlobsCliTest, AreSummedUpBesideTheLimit) {
  ASSERT_EQ(Run({"blobs", "totals"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("token:ci"));
  EXPECT_THAT(out, HasSubstr("3 MiB"));
  EXPECT_THAT(err, HasSubstr("the server keeps 1 GiB of everybody's together"));
  ASSERT_EQ(Run({"blobs", "totals", "--format=json"}), 0) << err;
  EXPECT_EQ(JsonLines().at(0), Json::parse(R"({"type": "blob_total", "principal": "token:ci", "namespace": "triton",
                                               "blobs": 12, "bytes": 3145728, "limit_bytes": 1073741824})"));
}

TEST_F(BlobsCliTest, ThatAreNoneAreARemark) {
  blobs_.KeepNothing();
  for (const char* action : {"list", "totals"}) {
    EXPECT_EQ(Run({"blobs", action}), 0);
    EXPECT_EQ(out, "");
    EXPECT_THAT(err, HasSubstr("No blobs"));
  }
}

TEST_F(BlobsCliTest, AreDeletedAsTheyAreChosen) {
  ASSERT_EQ(Run({"blobs", "delete", "--namespace", "triton", "--key", "K"}), 0) << err;
  EXPECT_EQ(out, "deleted: 12 blobs, 3 MiB\n");
  EXPECT_EQ(blobs_.last_delete().namespace_(), "triton");
  EXPECT_EQ(blobs_.last_delete().key(), "K");
  EXPECT_EQ(blobs_.last_delete().principal(), "");
  ASSERT_EQ(Run({"blobs", "delete", "--all", "--format=json"}), 0) << err;
  EXPECT_EQ(JsonLines().at(0), Json::parse(R"({"type": "deleted_blobs", "blobs": 12, "bytes": 3145728})"));
  EXPECT_EQ(Run({"blobs", "delete", "--principal", "token:other"}), 1);
  EXPECT_THAT(err, HasSubstr("needs admin"));
}

TEST_F(BlobsCliTest, AreNotDeletedByAccident) {
  EXPECT_EQ(Run({"blobs", "delete"}), 2);
  EXPECT_THAT(err, HasSubstr("--all"));
  EXPECT_EQ(Run({"blobs", "delete", "--all", "--key", "K"}), 2);
  EXPECT_EQ(Run({"blobs", "--all"}), 2);
  EXPECT_EQ(Run({"blobs", "erase"}), 2);
  EXPECT_EQ(blobs_.deletes(), 0);
}

}  // namespace
}  // namespace attune::cli
