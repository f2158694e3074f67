#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/base/sha256.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

v1::Blob SampleBlob(const std::string& file = "kernel.cubin", const std::string& data = "bytes") {
  v1::Blob blob;
  blob.set_principal("token:ci");
  blob.set_namespace_("triton");
  blob.set_key("K7");
  blob.set_file(file);
  blob.set_data(data);
  return blob;
}

class BlobContract : public StoreContract {
 protected:
  void SetUp() override {
    StoreContract::SetUp();
    if (!IsSkipped() && store().blobs().limit() == 0) GTEST_SKIP() << "the store has no place for files";
  }

  v1::Blob Put(const v1::Blob& blob) {
    absl::StatusOr<v1::Blob> put = store().blobs().Put(blob);
    EXPECT_TRUE(put.ok()) << put.status();
    return put.value_or(v1::Blob());
  }

  // Of the principal, namespace and key of `blob`: those of the files that there are.
  std::vector<v1::Blob> Find(const v1::Blob& blob, const std::vector<std::string>& files) {
    const auto found = store().blobs().Find({blob.principal(), blob.namespace_(), blob.key(), files});
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or(std::vector<v1::Blob>());
  }

  // Its data, "gone" where there is none.
  std::string DataOf(const v1::Blob& blob) {
    const std::vector<v1::Blob> found = Find(blob, {blob.file()});
    if (found.empty()) return "gone";
    const absl::StatusOr<std::string> data = store().blobs().Read(found[0]);
    EXPECT_TRUE(data.ok()) << data.status();
    return data.value_or("unreadable");
  }

  std::vector<std::string> List(const BlobFilter& filter) {
    std::vector<std::string> files;
    std::string token;
    do {
      const absl::StatusOr<Page<v1::Blob>> page = store().blobs().List(filter, 2, token);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const v1::Blob& blob : page->items) {
        EXPECT_THAT(blob.data(), IsEmpty());
        files.push_back(blob.file());
      }
      token = page->next_page_token;
    } while (!token.empty());
    return files;
  }
};

TEST_P(BlobContract, SurvivesReopeningAsItWasPut) {
  v1::Blob blob = SampleBlob("kernel.cubin", std::string("\x7f"
                                                         "ELF\0\xff",
                                                         6));
  blob.set_shared(true);
  const v1::Blob put = Put(blob);
  EXPECT_THAT(put.data(), IsEmpty());
  EXPECT_EQ(put.bytes(), 6);
  EXPECT_EQ(put.sha256(), Sha256(blob.data()));
  Reopen();
  const std::vector<v1::Blob> found = Find(blob, {"kernel.cubin"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].principal(), "token:ci");
  EXPECT_EQ(found[0].namespace_(), "triton");
  EXPECT_EQ(found[0].key(), "K7");
  EXPECT_TRUE(found[0].shared());
  EXPECT_EQ(found[0].sha256(), put.sha256());
  EXPECT_GT(found[0].create_time().seconds(), 0);
  EXPECT_EQ(DataOf(blob), blob.data());
}

TEST_P(BlobContract, MayBeEmpty) {
  Put(SampleBlob("empty", ""));
  EXPECT_EQ(DataOf(SampleBlob("empty")), "");
}

TEST_P(BlobContract, FindsTheFilesThatThereAreInTheOrderAskedFor) {
  Put(SampleBlob("a"));
  Put(SampleBlob("b"));
  const std::vector<v1::Blob> found = Find(SampleBlob(), {"b", "none", "a"});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].file(), "b");
  EXPECT_EQ(found[1].file(), "a");
}

TEST_P(BlobContract, TakesThePlaceOfTheSamePrincipalsAlone) {
  Put(SampleBlob("f", "first"));
  v1::Blob others = SampleBlob("f", "other's");
  others.set_principal("uid:1000");
  Put(others);
  Put(SampleBlob("f", "second"));
  EXPECT_EQ(DataOf(SampleBlob("f")), "second");
  EXPECT_EQ(DataOf(others), "other's");
  EXPECT_EQ(List({}).size(), 2U);
}

TEST_P(BlobContract, DoesNotReadWhatHasTakenItsPlace) {
  const v1::Blob first = Put(SampleBlob("f", "first"));
  Put(SampleBlob("f", "second"));
  EXPECT_EQ(store().blobs().Read(first).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(BlobContract, KeepsTheContentThatTwoHaveUntilBothAreGone) {
  Put(SampleBlob("one", "same"));
  Put(SampleBlob("two", "same"));
  Put(SampleBlob("one", "changed"));
  EXPECT_EQ(DataOf(SampleBlob("two")), "same");
  Put(SampleBlob("two", "changed"));
  EXPECT_EQ(DataOf(SampleBlob("one")), "changed");
}

TEST_P(BlobContract, MakesRoomByRemovingWhatWasUsedLeastRecently) {
  for (int i = 0; i < 10; ++i) Put(SampleBlob(absl::StrCat("f", i)));
  EXPECT_EQ(DataOf(SampleBlob("f0")), "bytes");
  v1::Blob large = SampleBlob("large", std::string(2 * 4096, 'x'));
  large.set_principal("uid:1000");
  Put(large);
  EXPECT_THAT(List({}), ElementsAre("large", "f9", "f8", "f7", "f6", "f5", "f4", "f3", "f0"));
}

TEST_P(BlobContract, CountsWhatIsReplacedOrDeletedNoMore) {
  for (int i = 0; i < 3; ++i) Put(SampleBlob("large", std::string(9 * 4096, static_cast<char>('a' + i))));
  Put(SampleBlob("small"));
  EXPECT_THAT(List({}), ElementsAre("small", "large"));
  EXPECT_EQ(store().blobs().Delete({.key = "K7"})->bytes, 9 * 4096 + 5);
  for (int i = 0; i < 10; ++i) Put(SampleBlob(absl::StrCat("f", i)));
  EXPECT_EQ(List({}).size(), 10U);
}

TEST_P(BlobContract, RefusesWhatIsLargerThanAllMayBeAndLeavesTheOthers) {
  Put(SampleBlob("small"));
  const absl::Status status = store().blobs().Put(SampleBlob("large", std::string(kBlobLimit + 1, 'x'))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("40961 bytes"));
  EXPECT_EQ(DataOf(SampleBlob("small")), "bytes");
}

TEST_P(BlobContract, RefusesWhatLacksItsNameAndSaysWhat) {
  v1::Blob blob = SampleBlob();
  blob.clear_namespace_();
  const absl::Status status = store().blobs().Put(blob).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "blob: namespace is not set; it must be");
}

TEST_P(BlobContract, ListsByPrincipalNamespaceAndKeyAndWhatAReaderMaySee) {
  Put(SampleBlob("a"));
  v1::Blob shared = SampleBlob("b");
  shared.set_shared(true);
  Put(shared);
  v1::Blob helion = SampleBlob("c");
  helion.set_namespace_("helion");
  Put(helion);
  v1::Blob others = SampleBlob("d");
  others.set_principal("uid:1000");
  others.set_key("K8");
  Put(others);
  EXPECT_THAT(List({}), ElementsAre("d", "c", "b", "a"));
  EXPECT_THAT(List({.principal = "token:ci"}), ElementsAre("c", "b", "a"));
  EXPECT_THAT(List({.cache = "triton"}), ElementsAre("d", "b", "a"));
  EXPECT_THAT(List({.key = "K8"}), ElementsAre("d"));
  EXPECT_THAT(List({.reader = "uid:1000"}), ElementsAre("d", "b"));
  EXPECT_THAT(List({.principal = "token:ci", .reader = "uid:1000"}), ElementsAre("b"));
}

TEST_P(BlobContract, SumsUpByPrincipalAndNamespaceTheLargestFirst) {
  Put(SampleBlob("a", "1234"));
  Put(SampleBlob("b", "12"));
  v1::Blob others = SampleBlob("c", "12345678");
  others.set_principal("uid:1000");
  others.set_namespace_("helion");
  Put(others);
  const auto totals = store().blobs().Totals({});
  ASSERT_TRUE(totals.ok()) << totals.status();
  ASSERT_EQ(totals->size(), 2U);
  EXPECT_EQ((*totals)[0].principal(), "uid:1000");
  EXPECT_EQ((*totals)[0].namespace_(), "helion");
  EXPECT_EQ((*totals)[1].blobs(), 2);
  EXPECT_EQ((*totals)[1].bytes(), 6);
  EXPECT_EQ(store().blobs().Totals({.principal = "token:ci"})->size(), 1U);
}

TEST_P(BlobContract, DeletesWhatFitsAndSaysHowMuch) {
  Put(SampleBlob("a", "1234"));
  Put(SampleBlob("b", "12"));
  v1::Blob others = SampleBlob("a", "other's");
  others.set_principal("uid:1000");
  Put(others);
  const absl::StatusOr<RemovedBlobs> removed = store().blobs().Delete({.principal = "token:ci", .cache = "triton"});
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->blobs, 2);
  EXPECT_EQ(removed->bytes, 6);
  EXPECT_EQ(DataOf(others), "other's");
  EXPECT_EQ(store().blobs().Delete({.principal = "token:ci"})->blobs, 0);
}

TEST_P(BlobContract, RefusesATokenOfAnotherListing) {
  for (const char* file : {"a", "b"}) Put(SampleBlob(file));
  const std::string token = store().blobs().List({}, 1, "")->next_page_token;
  EXPECT_EQ(store().blobs().List({.key = "K7"}, 1, token).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(NoBlobs, AreKeptAndItIsSaid) {
  const absl::Status status = NoBlobs().Put(SampleBlob()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--blob_limit=0"));
  EXPECT_THAT(*NoBlobs().Find({"token:ci", "triton", "K7", {"kernel.cubin"}}), IsEmpty());
  EXPECT_EQ(NoBlobs().Read(SampleBlob()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(NoBlobs().List({}, 10, "")->items, IsEmpty());
  EXPECT_EQ(NoBlobs().Delete({})->blobs, 0);
}

INSTANTIATE_TEST_SUITE_P(Stores, BlobContract, testing::ValuesIn(Implementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
