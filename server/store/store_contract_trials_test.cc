#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::IsEmpty;
using Order = v1::ListTrialsRequest;

class TrialContract : public StoreContract {
 protected:
  std::vector<std::string> List(const v1::TrialFilter& filter, Order::Order order = Order::ORDER_NEWEST,
                                int page_size = 2) {
    std::vector<std::string> names;
    std::string token;
    do {
      absl::StatusOr<Page<v1::Trial>> page = store().ListTrials(filter, order, page_size, token);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) return names;
      EXPECT_LE(page->items.size(), static_cast<size_t>(page_size));
      for (const v1::Trial& trial : page->items) names.push_back(trial.name());
      token = page->next_page_token;
    } while (!token.empty());
    return names;
  }

  std::vector<std::string> Known(const v1::Trial& like) {
    std::vector<std::string> names;
    absl::StatusOr<std::vector<v1::Trial>> known =
        store().KnownTrials(like.problem_text(), InstanceOf(like), like.policy(), like.dependencies());
    EXPECT_TRUE(known.ok()) << known.status();
    for (const v1::Trial& trial : *known) names.push_back(trial.name());
    return names;
  }
};

TEST_P(TrialContract, ReturnsATrialAsItWasAppended) {
  v1::Trial trial = SampleTrial();
  trial.set_name("trials/999");  // ignored
  const std::string name = Append(trial);
  trial.set_name(name);
  absl::StatusOr<v1::Trial> stored = store().GetTrial(name);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*stored, trial)) << stored->DebugString();
}

TEST_P(TrialContract, KeepsTrialsAcrossReopening) {
  const std::string name = Append(SampleTrial());
  Reopen();
  EXPECT_TRUE(store().GetTrial(name).ok());
  EXPECT_NE(Append(SampleTrial()), name);
}

TEST_P(TrialContract, DoesNotFindWhatWasNeverAppended) {
  Append(SampleTrial());
  for (const char* name : {"trials/2", "trials/0", "trials/-1", "trials/01", "trials/", "incumbents/1", "", "trials/1x",
                           "trials/99999999999999999999"}) {
    EXPECT_EQ(store().GetTrial(name).status().code(), absl::StatusCode::kNotFound) << name;
  }
}

TEST_P(TrialContract, RefusesATrialWithoutWhatItIsFoundBy) {
  const std::vector<std::pair<std::string, std::function<void(v1::Trial&)>>> cases = {
      {"problem_text", [](v1::Trial& trial) { trial.clear_problem_text(); }},
      {"device_id", [](v1::Trial& trial) { trial.clear_device_id(); }},
      {"variant.text", [](v1::Trial& trial) { trial.mutable_variant()->clear_text(); }},
      {"variant.family", [](v1::Trial& trial) { trial.mutable_variant()->clear_family(); }},
      {"policy", [](v1::Trial& trial) { trial.clear_policy(); }},
      {"verdict", [](v1::Trial& trial) { trial.clear_verdict(); }}};
  for (const auto& [field, clear] : cases) {
    v1::Trial trial = SampleTrial();
    clear(trial);
    const absl::Status status = store().AppendTrial(trial, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(field));
  }
  EXPECT_THAT(List({}), IsEmpty());
}

TEST_P(TrialContract, FindsTheNewestTrialOfAKey) {
  Append(SampleTrial(64, 50));
  const std::string newest = Append(SampleTrial(64, 40));
  absl::StatusOr<v1::Trial> found = store().FindTrial(KeyOf(SampleTrial()));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->name(), newest);
  EXPECT_TRUE(found->has_recipe());
}

TEST_P(TrialContract, FindsNothingWhenAnyPartOfTheKeyDiffers) {
  Append(SampleTrial());
  const std::vector<std::function<void(TrialKey&)>> changes = {
      [](TrialKey& key) { key.problem_text = "b1.h1.q128.d64.f16"; },
      [](TrialKey& key) { key.device.uuid = "GPU-1"; },
      [](TrialKey& key) { key.variant_text = "attention_simt:BLOCK_M=32"; },
      [](TrialKey& key) { key.policy = v1::POLICY_COLD; },
      [](TrialKey& key) { key.dependencies.set_source_hash("source 2"); },
      [](TrialKey& key) { key.dependencies.set_toolchain("nvrtc 12.9"); },
      [](TrialKey& key) { key.dependencies.set_driver("580.2"); },
      [](TrialKey& key) { key.dependencies.set_device_fingerprint("h200"); }};
  for (size_t i = 0; i < changes.size(); ++i) {
    TrialKey key = KeyOf(SampleTrial());
    changes[i](key);
    EXPECT_EQ(store().FindTrial(key).status().code(), absl::StatusCode::kNotFound) << "change " << i;
  }
}

TEST_P(TrialContract, NeverFindsALostTrial) {
  v1::Trial lost = SampleTrial();
  lost.set_verdict(v1::VERDICT_LOST);
  Append(lost);
  EXPECT_EQ(store().FindTrial(KeyOf(lost)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Known(lost), IsEmpty());
  const std::string crashed = [&] {
    v1::Trial trial = SampleTrial();
    trial.set_verdict(v1::VERDICT_CRASHED);
    return Append(trial);
  }();
  Append(lost);
  EXPECT_EQ(store().FindTrial(KeyOf(lost))->name(), crashed);
  EXPECT_THAT(Known(lost), ElementsAre(crashed));
}

TEST_P(TrialContract, PassesOverATrialThatIsToBeTriedAgain) {
  Append(SampleTrial(64));
  v1::Trial crashed = SampleTrial(64);
  crashed.set_verdict(v1::VERDICT_CRASHED);
  Append(crashed);
  const std::string good = Append(SampleTrial(128));
  v1::TrialFilter filter;
  filter.add_verdicts(v1::VERDICT_CRASHED);
  const absl::StatusOr<Retried> retried = store().RetryTrials(filter);
  ASSERT_TRUE(retried.ok()) << retried.status();
  EXPECT_EQ(retried->trials, 1);
  EXPECT_THAT(retried->problems, ElementsAre(kProblem));
  EXPECT_EQ(store().FindTrial(KeyOf(crashed)).status().code(), absl::StatusCode::kNotFound)
      << "the one before it is no better known";
  EXPECT_THAT(Known(crashed), ElementsAre(good));
  const std::string again = Append(SampleTrial(64));
  EXPECT_EQ(store().FindTrial(KeyOf(crashed))->name(), again);
  EXPECT_EQ(store().RetryTrials(filter)->trials, 0) << "once each";
}

TEST_P(TrialContract, RetriesOnlyTheTrialsThatTheFilterNames) {
  for (const char* problem : {"b1.h1.q128.d64.f16", "b1.h1.q256.d64.f16"}) {
    for (const v1::Verdict verdict : {v1::VERDICT_CRASHED, v1::VERDICT_TIMEOUT}) {
      v1::Trial trial = SampleTrial(verdict);
      trial.set_problem_text(problem);
      trial.set_verdict(verdict);
      Append(trial);
    }
  }
  v1::TrialFilter filter;
  filter.add_verdicts(v1::VERDICT_CRASHED);
  filter.set_problem("b1.h1.q256.d64.f16");
  filter.set_family("attention_mma");
  EXPECT_EQ(store().RetryTrials(filter)->trials, 0);
  filter.set_family("attention_simt");
  EXPECT_EQ(store().RetryTrials(filter)->trials, 1);
  filter.clear_problem();
  filter.add_verdicts(v1::VERDICT_TIMEOUT);
  const absl::StatusOr<Retried> rest = store().RetryTrials(filter);
  EXPECT_EQ(rest->trials, 3);
  EXPECT_THAT(rest->problems, ElementsAre("b1.h1.q128.d64.f16", "b1.h1.q256.d64.f16"));
}

TEST_P(TrialContract, KnowsTheNewestOfEachVariantAndSource) {
  Append(SampleTrial(64));
  const std::string other_variant = Append(SampleTrial(128));
  const std::string newest = Append(SampleTrial(64));
  v1::Trial other_source = SampleTrial(64);
  other_source.mutable_dependencies()->set_source_hash("source 2");
  const std::string under_other_source = Append(other_source);
  v1::Trial other_driver = SampleTrial(64);
  other_driver.mutable_dependencies()->set_driver("581");
  Append(other_driver);
  v1::Trial cold = SampleTrial(64);
  cold.set_policy(v1::POLICY_COLD);
  Append(cold);
  EXPECT_THAT(Known(SampleTrial()), ElementsAre(other_variant, newest, under_other_source));
}

// A trial by another card of the class.
v1::Trial Ended(v1::Verdict verdict, v1::Trial trial = SampleTrial()) {
  trial.set_verdict(verdict);
  return trial;
}

TEST_P(TrialContract, KeepsTheTimesOfACardToThatCard) {
  const std::string own = Append(SampleTrial());
  EXPECT_THAT(Known(OfSister(SampleTrial())), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store().FindTrial(KeyOf(OfSister(SampleTrial()))).status()));
  const std::string sisters = Append(OfSister(SampleTrial()));
  EXPECT_THAT(Known(SampleTrial()), ElementsAre(own));
  EXPECT_EQ(store().FindTrial(KeyOf(SampleTrial()))->name(), own);
  EXPECT_EQ(store().FindTrial(KeyOf(OfSister(SampleTrial())))->name(), sisters);
}

TEST_P(TrialContract, KnowsACardByItsUuidWhateverItsId) {
  const std::string name = Append(SampleTrial());
  v1::Trial moved = SampleTrial();
  moved.set_device_id("cuda:7");
  EXPECT_THAT(Known(moved), ElementsAre(name));
  v1::Trial another = SampleTrial();
  another.set_device_uuid("GPU-7");
  EXPECT_THAT(Known(another), IsEmpty()) << "another card that has the id now";
}

TEST_P(TrialContract, CountsATrialWithoutUuidAsThatOfTheCardWithItsId) {
  v1::Trial old = SampleTrial();
  old.clear_device_uuid();
  const std::string name = Append(old);
  EXPECT_THAT(Known(SampleTrial()), ElementsAre(name));
  EXPECT_THAT(Known(old), ElementsAre(name));
  EXPECT_THAT(Known(OfSister(SampleTrial())), IsEmpty());
  EXPECT_EQ(store().GetTrial(name)->device_uuid(), "");
}

TEST_P(TrialContract, SharesVerdictsOnTheCodeWithinTheClassAndNoOthers) {
  for (int number = v1::Verdict_MIN + 1; number <= v1::Verdict_MAX; ++number) {
    const auto verdict = static_cast<v1::Verdict>(number);
    const v1::Trial trial = Ended(verdict, SampleTrial(number));
    const std::string name = Append(trial);
    const bool shared = verdict != v1::VERDICT_OK && verdict != v1::VERDICT_SLOW && verdict != v1::VERDICT_UNSTABLE &&
                        verdict != v1::VERDICT_LOST;
    EXPECT_EQ(HoldsForClass(verdict), shared);
    EXPECT_EQ(store().FindTrial(KeyOf(OfSister(trial))).ok(), shared) << v1::Verdict_Name(verdict);
    const std::vector<std::string> known = Known(OfSister(trial));
    EXPECT_EQ(std::count(known.begin(), known.end(), name), shared ? 1 : 0) << v1::Verdict_Name(verdict);
    v1::Trial of_another_class = OfSister(trial);
    of_another_class.mutable_dependencies()->set_device_fingerprint("h200");
    EXPECT_FALSE(store().FindTrial(KeyOf(of_another_class)).ok()) << v1::Verdict_Name(verdict);
  }
}

TEST_P(TrialContract, FindsTheNewestOfOwnTrialsAndTheClasssVerdicts) {
  const std::string sisters = Append(OfSister(Ended(v1::VERDICT_CRASHED)));
  EXPECT_THAT(Known(SampleTrial()), ElementsAre(sisters));
  const std::string own = Append(SampleTrial());
  EXPECT_THAT(Known(SampleTrial()), ElementsAre(own));
  EXPECT_EQ(store().FindTrial(KeyOf(SampleTrial()))->name(), own);
  const std::string wrong = Append(OfSister(Ended(v1::VERDICT_WRONG_RESULT)));
  EXPECT_THAT(Known(SampleTrial()), ElementsAre(wrong));
  EXPECT_EQ(store().FindTrial(KeyOf(SampleTrial()))->name(), wrong);
  Append(OfSister(SampleTrial()));
  EXPECT_THAT(Known(SampleTrial()), ElementsAre(own)) << "the sister has found it right since";
}

TEST_P(TrialContract, PassesOverASistersVerdictThatIsToBeTriedAgain) {
  Append(OfSister(Ended(v1::VERDICT_CRASHED)));
  v1::TrialFilter filter;
  filter.set_device_class(kClass);
  filter.add_verdicts(v1::VERDICT_CRASHED);
  EXPECT_EQ(store().RetryTrials(filter)->trials, 1);
  EXPECT_THAT(Known(SampleTrial()), IsEmpty());
  EXPECT_FALSE(store().FindTrial(KeyOf(SampleTrial())).ok());
}

TEST_P(TrialContract, GivesOtherCardsTimesAsPriorsFastestFirst) {
  const auto priors = [this](const v1::Trial& like, int most = 10) {
    std::vector<std::string> names;
    const auto found =
        store().PriorTrials(like.problem_text(), InstanceOf(like), like.policy(), like.dependencies(), most);
    EXPECT_TRUE(found.ok()) << found.status();
    for (const v1::Trial& trial : *found) names.push_back(trial.name());
    return names;
  };
  Append(SampleTrial(16, 10));
  EXPECT_THAT(priors(SampleTrial()), IsEmpty()) << "its own times are no priors";
  Append(OfSister(SampleTrial(32, 20)));
  const std::string slow = Append(OfSister(SampleTrial(32, 30)));
  const std::string fast = Append(OfSister(SampleTrial(64, 25)));
  Append(OfSister(Ended(v1::VERDICT_CRASHED, SampleTrial(128))));
  v1::Trial of_another_class = OfSister(SampleTrial(256, 1));
  of_another_class.mutable_dependencies()->set_device_fingerprint("h200");
  Append(of_another_class);
  v1::Trial cold = OfSister(SampleTrial(256, 1));
  cold.set_policy(v1::POLICY_COLD);
  Append(cold);
  EXPECT_THAT(priors(SampleTrial()), ElementsAre(fast, slow));
  EXPECT_THAT(priors(SampleTrial(), 1), ElementsAre(fast));
  Append(OfSister(Ended(v1::VERDICT_WRONG_RESULT, SampleTrial(64))));
  EXPECT_THAT(priors(SampleTrial()), ElementsAre(slow)) << "known to be wrong by now";
}

TEST_P(TrialContract, ListsNewestFirstAcrossPages) {
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back(Append(SampleTrial(i)));
  EXPECT_THAT(List({}), ElementsAre(names[4], names[3], names[2], names[1], names[0]));
}

TEST_P(TrialContract, ListsFastestFirstAndTheUntimedLast) {
  v1::Trial wrong = SampleTrial(1, 5);
  wrong.set_verdict(v1::VERDICT_WRONG_RESULT);
  const std::string wrong_name = Append(wrong);
  const std::string slow = Append(SampleTrial(2, 30));
  const std::string fast = Append(SampleTrial(3, 10));
  const std::string as_slow = Append(SampleTrial(4, 30));
  const std::string untimed = Append(SampleTrial(5, 0));
  for (int page_size : {1, 2, 3, 10}) {
    EXPECT_THAT(List({}, Order::ORDER_FASTEST, page_size), ElementsAre(fast, slow, as_slow, wrong_name, untimed));
  }
}

TEST_P(TrialContract, ListsWithoutRecipes) {
  Append(SampleTrial());
  absl::StatusOr<Page<v1::Trial>> page = store().ListTrials({}, Order::ORDER_NEWEST, 1, "");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_FALSE(page->items.at(0).has_recipe());
  EXPECT_EQ(page->items.at(0).timing().median_us(), 40);
}

TEST_P(TrialContract, FiltersByEachField) {
  const std::string plain = Append(SampleTrial());
  const std::vector<std::pair<std::function<void(v1::Trial&)>, std::function<void(v1::TrialFilter&)>>> cases = {
      {[](v1::Trial& t) { t.set_problem_text("b1.h1.q1.d64.f16"); },
       [](v1::TrialFilter& f) { f.set_problem("b1.h1.q1.d64.f16"); }},
      {[](v1::Trial& t) { t.set_device_id("cuda:1"); }, [](v1::TrialFilter& f) { f.set_device_id("cuda:1"); }},
      {[](v1::Trial& t) { t.set_device_uuid("GPU-1"); }, [](v1::TrialFilter& f) { f.set_device_uuid("GPU-1"); }},
      {[](v1::Trial& t) { t.mutable_dependencies()->set_device_fingerprint("h200"); },
       [](v1::TrialFilter& f) { f.set_device_class("h200"); }},
      {[](v1::Trial& t) {
         t.mutable_variant()->set_family("attention_wmma");
         t.mutable_variant()->set_text("attention_wmma:");
       },
       [](v1::TrialFilter& f) { f.set_family("attention_wmma"); }},
      {[](v1::Trial& t) { t.set_verdict(v1::VERDICT_TIMEOUT); },
       [](v1::TrialFilter& f) { f.add_verdicts(v1::VERDICT_TIMEOUT); }},
      {[](v1::Trial& t) { t.set_policy(v1::POLICY_COLD); }, [](v1::TrialFilter& f) { f.set_policy(v1::POLICY_COLD); }},
      {[](v1::Trial& t) { t.set_job("operations/2"); }, [](v1::TrialFilter& f) { f.set_job("operations/2"); }}};
  v1::TrialFilter all_fields;
  for (const auto& [change, filter_by] : cases) {
    v1::Trial trial = SampleTrial();
    change(trial);
    const std::string name = Append(trial);
    v1::TrialFilter filter;
    filter_by(filter);
    filter_by(all_fields);
    EXPECT_THAT(List(filter), ElementsAre(name)) << filter.DebugString();
    EXPECT_THAT(List(filter, Order::ORDER_FASTEST), ElementsAre(name)) << filter.DebugString();
  }
  EXPECT_THAT(List(all_fields), IsEmpty());
  v1::Trial last = SampleTrial();
  for (const auto& [change, filter_by] : cases) change(last);
  EXPECT_THAT(List(all_fields), ElementsAre(Append(last)));
}

TEST_P(TrialContract, FiltersByAnyOfSeveralVerdicts) {
  std::vector<std::string> names;
  for (v1::Verdict verdict : {v1::VERDICT_OK, v1::VERDICT_TIMEOUT, v1::VERDICT_CRASHED}) {
    v1::Trial trial = SampleTrial();
    trial.set_verdict(verdict);
    names.push_back(Append(trial));
  }
  v1::TrialFilter filter;
  filter.add_verdicts(v1::VERDICT_CRASHED);
  filter.add_verdicts(v1::VERDICT_OK);
  EXPECT_THAT(List(filter), ElementsAre(names[2], names[0]));
}

TEST_P(TrialContract, PagesAreNotDisturbedByNewTrials) {
  const std::string first = Append(SampleTrial(1));
  const std::string second = Append(SampleTrial(2));
  absl::StatusOr<Page<v1::Trial>> page = store().ListTrials({}, Order::ORDER_NEWEST, 1, "");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->items.at(0).name(), second);
  Append(SampleTrial(3));
  page = store().ListTrials({}, Order::ORDER_NEWEST, 1, page->next_page_token);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->items.at(0).name(), first);
  EXPECT_EQ(page->next_page_token, "");
}

TEST_P(TrialContract, RefusesAPageTokenOfAnotherListing) {
  Append(SampleTrial(1));
  Append(SampleTrial(2));
  absl::StatusOr<Page<v1::Trial>> page = store().ListTrials({}, Order::ORDER_NEWEST, 1, "");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_NE(page->next_page_token, "");
  v1::TrialFilter filter;
  filter.set_problem(kProblem);
  EXPECT_EQ(store().ListTrials(filter, Order::ORDER_NEWEST, 1, page->next_page_token).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store().ListTrials({}, Order::ORDER_FASTEST, 1, page->next_page_token).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store().ListTrials({}, Order::ORDER_NEWEST, 1, "2").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(TrialContract, GivesFiftyAPageUnlessAskedAndNeverOverAThousand) {
  for (int i = 0; i < 51; ++i) Append(SampleTrial(i));
  EXPECT_EQ(store().ListTrials({}, Order::ORDER_NEWEST, 0, "")->items.size(), 50U);
  EXPECT_EQ(store().ListTrials({}, Order::ORDER_NEWEST, 2'000'000'000, "")->items.size(), 51U);
}

TEST_P(TrialContract, TakesTextsForWhatTheyAre) {
  v1::Trial trial = SampleTrial();
  trial.set_problem_text("'; DROP TABLE trials; --");
  trial.set_job(std::string("a\0b", 3));
  const std::string name = Append(trial);
  v1::TrialFilter filter;
  filter.set_problem(trial.problem_text());
  EXPECT_THAT(List(filter), ElementsAre(name));
  EXPECT_EQ(store().GetTrial(name)->job(), trial.job());
}

INSTANTIATE_TEST_SUITE_P(Store, TrialContract, testing::ValuesIn(Implementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
