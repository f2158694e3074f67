// Readers beside writers; the test that ThreadSanitizer is for.
#include <atomic>
#include <limits>
#include <thread>

#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

class ConcurrencyContract : public StoreContract {
 protected:
  static int64_t IdOf(const v1::Trial& trial) { return std::stoll(trial.name().substr(trial.name().find('/') + 1)); }

  // Every page is newest first, with no trial twice.
  void ReadAllPages() {
    int64_t last = std::numeric_limits<int64_t>::max();
    std::string token;
    do {
      absl::StatusOr<Page<v1::Trial>> page = store().ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 7, token);
      ASSERT_TRUE(page.ok()) << page.status();
      for (const v1::Trial& trial : page->items) {
        ASSERT_LT(IdOf(trial), last);
        last = IdOf(trial);
      }
      token = page->next_page_token;
    } while (!token.empty());
  }
};

TEST_P(ConcurrencyContract, EachWriterReadsItsOwnWritesWhileOthersReadAndWrite) {
  constexpr int kWriters = 4;
  constexpr int kReaders = 6;
  constexpr int kTrials = 40;
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([this, writer, &writing] {
      for (int i = 0; i < kTrials; ++i) {
        const v1::Trial trial = SampleTrial(1000 * writer + i, 1 + i);
        const std::string name = Append(trial);
        absl::StatusOr<v1::Trial> found = store().FindTrial(KeyOf(trial));
        EXPECT_TRUE(found.ok()) << found.status();
        EXPECT_EQ(found.value_or(v1::Trial()).name(), name);
        EXPECT_EQ(store().GetTrial("trials/none").status().code(), absl::StatusCode::kNotFound);
        EXPECT_EQ(store().AppendTrial({}, {}).status().code(), absl::StatusCode::kInvalidArgument);
      }
      --writing;
    });
  }
  for (int reader = 0; reader < kReaders; ++reader) {
    threads.emplace_back([this, &writing] {
      while (writing > 0) {
        ReadAllPages();
        EXPECT_TRUE(
            store().KnownTrials(kProblem, {kDevice, "GPU-0"}, v1::POLICY_HOT, SampleTrial().dependencies()).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store().KnownTrials(kProblem, {kDevice, "GPU-0"}, v1::POLICY_HOT, SampleTrial().dependencies())->size(),
            static_cast<size_t>(kWriters * kTrials));
}

INSTANTIATE_TEST_SUITE_P(Store, ConcurrencyContract, testing::ValuesIn(Implementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
