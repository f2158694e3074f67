#include "server/catalog/copy/served_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "server/catalog/answers/code_supply.h"
#include "server/catalog/copy/results_of_copy.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/results_fixture.h"
#include "server/store/testing/fake_store.h"

namespace attune::catalog {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHere[] = "host=db.example port=5432 dbname=attune user=attune";
const absl::Time kTime = absl::FromUnixSeconds(1'764'255'485);  // 2025-11-27 14:58:05 UTC

class ServedCopyTest : public ResultsTest {
 protected:
  // A store in which another daemon promotes a problem's next incumbent while it is listed: the page with the new one
  // is read before, and that with the old one after.
  class PromotedMeanwhile : public store::FakeStore {
   public:
    void TakeOver(FakeStore& other) {
      const absl::StatusOr<v1::Incumbent> served = other.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
      ASSERT_TRUE(served.ok()) << served.status();
      v1::Trial trial = *other.GetTrial(served->trial().name());
      trial.clear_name();
      v1::Incumbent next;
      next.mutable_trial()->set_name(*AppendTrial(trial, {}));
      ASSERT_TRUE(Promote(next, "", {}).ok());
    }
    absl::StatusOr<store::Page<v1::Incumbent>> ListIncumbents(const store::IncumbentFilter& filter, int page_size,
                                                              absl::string_view token) override {
      if (promoted && filter.problem_text.empty()) return store::Page<v1::Incumbent>();
      return FakeStore::ListIncumbents(filter, page_size, token);
    }
    absl::StatusOr<std::vector<store::ServedChange>> ChangesOfServed(absl::Duration) override {
      if (!promoted) return std::vector<store::ServedChange>();
      return std::vector<store::ServedChange>{{kProblem, "an L4", v1::POLICY_HOT, absl::Now()}};
    }

    bool promoted = false;
  };

  served::v1::Copy Take() {
    absl::StatusOr<served::v1::Copy> copy = TakeCopy(store_, kHere, kTime);
    EXPECT_TRUE(copy.ok()) << copy.status();
    return *std::move(copy);
  }
  std::string File() {
    absl::StatusOr<std::string> file = CopyToFile(Take());
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
};

TEST_F(ServedCopyTest, ComesBackFromItsFileAsItWas) {
  TuneOne();
  v1::Host host;
  host.set_name("hosts/a");
  ASSERT_TRUE(store_.hosts().Register(host, 1).ok());
  const served::v1::Copy copy = Take();
  EXPECT_EQ(copy.incumbents_size(), 1);
  EXPECT_EQ(copy.hosts_size(), 1);
  const absl::StatusOr<std::string> file = CopyToFile(copy);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<served::v1::Copy> back = CopyFromFile(*file, kHere);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->SerializeAsString(), copy.SerializeAsString());
  EXPECT_EQ(TimeText(*back), "2025-11-27 14:58 UTC");
}

// One host, that nothing was heard of for a while.
class LostHost final : public store::Hosts {
 public:
  absl::StatusOr<std::vector<v1::Host>> List() override {
    v1::Host host;
    host.set_name("hosts/a");
    host.set_state(v1::Host::STATE_LOST);
    return std::vector<v1::Host>{host};
  }
  absl::Status Register(const v1::Host&, int64_t) override { return absl::UnimplementedError(""); }
  absl::StatusOr<bool> Beat(absl::string_view, int64_t) override { return absl::UnimplementedError(""); }
  absl::Status Leave(absl::string_view, int64_t) override { return absl::UnimplementedError(""); }
  absl::StatusOr<v1::Host> SetDraining(absl::string_view, bool) override { return absl::UnimplementedError(""); }
  absl::StatusOr<v1::Host> Forget(absl::string_view) override { return absl::UnimplementedError(""); }
};

// Right after an outage every host is lost until it beats again; what it has is known all the same.
TEST_F(ServedCopyTest, TellsNotThatAHostIsLost) {
  class AfterAnOutage : public store::FakeStore {
   public:
    store::Hosts& hosts() override { return hosts_; }

   private:
    LostHost hosts_;
  } store;
  const absl::StatusOr<served::v1::Copy> copy = TakeCopy(store, kHere, kTime);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->hosts(0).state(), v1::Host::STATE_LIVE);
}

TEST_F(ServedCopyTest, HasWhatIsPromotedWhileTheStoreIsListed) {
  TuneOne();
  PromotedMeanwhile store;
  store.TakeOver(store_);
  store.promoted = true;
  const absl::StatusOr<served::v1::Copy> copy = TakeCopy(store, kHere, kTime);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->incumbents_size(), 1);
}

TEST_F(ServedCopyTest, WhatIsPromotedWhileTheStoreIsReadAgainIsServed) {
  TuneOne();
  PromotedMeanwhile store;
  store.TakeOver(store_);
  const Host host = Today();
  const absl::StatusOr<std::unique_ptr<Results>> results = Results::Load(store, host);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE((*results)->IsTuned(Key()));
  store.promoted = true;
  ASSERT_TRUE((*results)->Reload().ok());
  EXPECT_TRUE((*results)->IsTuned(Key()));
}

TEST_F(ServedCopyTest, ADamagedFileIsNoCopy) {
  TuneOne();
  const std::string file = File();
  for (size_t at = 0; at < file.size(); at += 1 + file.size() / 97) {
    std::string flipped = file;
    flipped[at] ^= 1;
    EXPECT_FALSE(CopyFromFile(flipped, kHere).ok()) << at;
    EXPECT_EQ(CopyFromFile(file.substr(0, at), kHere).status().code(), absl::StatusCode::kDataLoss) << at;
  }
  EXPECT_EQ(CopyFromFile(absl::StrCat(file, "more"), kHere).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ServedCopyTest, OfAnotherDatabaseItIsNotUsed) {
  const absl::Status foreign = CopyFromFile(File(), "host=other.example").status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(foreign.message(), HasSubstr("of another database, 'host=db.example"));
}

TEST_F(ServedCopyTest, OfALaterFormatItIsNotUsed) {
  const std::string later = absl::StrReplaceAll(File(), {{"served copy 1 ", "served copy 2 "}});
  const absl::Status refused = CopyFromFile(later, kHere).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("of format 2; this program knows format 1"));
}

TEST_F(ServedCopyTest, AnswersAsTheStoreWouldAndSaysThatItIsOne) {
  TuneOne();
  ASSERT_TRUE(store_
                  .RecordBaseline([] {
                    v1::Baseline baseline;
                    baseline.set_problem_text(kProblem);
                    baseline.set_device_id("cuda:0");
                    baseline.set_policy(v1::POLICY_HOT);
                    baseline.set_contender("flash");
                    baseline.set_median_us(50);
                    return baseline;
                  }())
                  .ok());
  const served::v1::Copy copy = Take();
  const Host host = Today();
  const std::unique_ptr<Results> stored = Open(host);
  store_.FailReads(absl::UnavailableError("away"));
  const std::unique_ptr<Results> copied = LoadFromCopy(copy, store_, host);
  EXPECT_TRUE(copied->IsTuned(Key()));
  for (const std::string& problem : {std::string(kProblem), std::string("b1.h1.q160.d64.f16")}) {
    const auto from_store = stored->GetBest(Ask(problem));
    auto from_copy = copied->GetBest(Ask(problem));
    ASSERT_TRUE(from_store.ok() && from_copy.ok()) << from_store.status() << from_copy.status();
    EXPECT_THAT(
        from_copy->provenance_detail(),
        EndsWith("from this daemon's copy of 2025-11-27 14:58 UTC: the database has not answered since it started"));
    from_copy->set_provenance_detail(from_store->provenance_detail());
    EXPECT_EQ(from_copy->SerializeAsString(), from_store->SerializeAsString());
  }
}

TEST_F(ServedCopyTest, GivesItsPlaceToTheStoreAndSaysSoNoMore) {
  const served::v1::Copy before = Take();
  TuneOne();
  const Host host = Today();
  const std::unique_ptr<Results> results = LoadFromCopy(before, store_, host);
  EXPECT_EQ(results->GetBest(Ask(kProblem))->provenance(), v1::PROVENANCE_HEURISTIC) << "nothing was tuned then";
  const uint64_t version = results->version();
  ASSERT_TRUE(results->Reload().ok());
  EXPECT_GT(results->version(), version);
  EXPECT_EQ(results->GetBest(Ask(kProblem))->provenance(), v1::PROVENANCE_EXACT);
  EXPECT_EQ(results->GetBest(Ask(kProblem))->provenance_detail(), "");
}

// Has everything read again while an answer is made.
class ReloadingSupply : public CodeSupply {
 public:
  CodeState Ask(const AnswerPtr&) override { return {v1::ARTIFACT_STATE_NONE, "", "none is made here"}; }
  CodeState AskForLost(const AnswerPtr& answer) override { return Ask(answer); }
  bool IsUseless(absl::string_view) const override {
    Results* const one = std::exchange(results, nullptr);
    EXPECT_TRUE(one == nullptr || one->Reload().ok());
    return false;
  }
  void Condemn(absl::string_view, std::string) override {}
  uint64_t useless() const override { return 0; }
  void ForgetUseless() override {}
  uint64_t version() const override { return 0; }
  void Await(absl::string_view, absl::Duration, std::function<void()> known) override { known(); }

  mutable Results* results = nullptr;
};

TEST_F(ServedCopyTest, WhatIsMadeOfItWhileTheStoreTakesItsPlaceSaysSo) {
  TuneOne();
  const Host host = Today();
  ReloadingSupply supply;
  const std::unique_ptr<Results> results = LoadFromCopy(Take(), store_, host, &supply);
  const v1::GetBestRequest ask = Ask("b1.h1.q160.d64.f16");
  supply.results = results.get();
  const auto meanwhile = results->GetBest(ask);
  ASSERT_EQ(supply.results, nullptr) << "nothing was read again";
  EXPECT_EQ(meanwhile->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_THAT(meanwhile->provenance_detail(), HasSubstr("from this daemon's copy"));
  EXPECT_THAT(results->GetBest(ask)->provenance_detail(), Not(HasSubstr("from this daemon's copy")));
}

TEST_F(ServedCopyTest, WhatTheStoreHasNoMoreIsNotServedAfterIt) {
  TuneOne();
  const served::v1::Copy before = Take();
  store::FakeStore restored;  // of before that tuning
  const Host host = Today();
  const std::unique_ptr<Results> results = LoadFromCopy(before, restored, host);
  EXPECT_TRUE(results->IsTuned(Key()));
  ASSERT_TRUE(results->Reload().ok());
  EXPECT_FALSE(results->IsTuned(Key()));
}

}  // namespace
}  // namespace attune::catalog
