#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::HasSubstr;

class IncumbentContract : public StoreContract {
 protected:
  absl::StatusOr<v1::Incumbent> Promote(const v1::Trial& trial, absl::string_view expected_previous) {
    v1::Incumbent incumbent;
    incumbent.mutable_trial()->set_name(Append(trial));
    incumbent.set_job("operations/1");
    incumbent.set_why("fastest");
    return store().Promote(incumbent, expected_previous, {});
  }

  std::string MustPromote(const v1::Trial& trial, absl::string_view expected_previous) {
    absl::StatusOr<v1::Incumbent> incumbent = Promote(trial, expected_previous);
    EXPECT_TRUE(incumbent.ok()) << incumbent.status();
    return incumbent.ok() ? incumbent->name() : "";
  }

  absl::StatusOr<v1::Incumbent> Served() { return store().GetIncumbent(kProblem, kClass, v1::POLICY_HOT); }

  std::vector<std::string> List(const IncumbentFilter& filter) {
    std::vector<std::string> names;
    std::string token;
    do {
      absl::StatusOr<Page<v1::Incumbent>> page = store().ListIncumbents(filter, 1, token);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const v1::Incumbent& incumbent : page->items) names.push_back(incumbent.name());
      token = page->next_page_token;
    } while (!token.empty());
    return names;
  }
};

TEST_P(IncumbentContract, ServesWhatWasPromoted) {
  v1::Incumbent asked;
  asked.mutable_trial()->set_name(Append(SampleTrial()));
  asked.set_job("operations/1");
  asked.set_why("12 % faster");
  asked.mutable_promote_time()->set_seconds(1'800'000'001);
  asked.add_ties()->set_text("attention_simt:BLOCK_M=32");
  asked.mutable_claim()->set_tried(58);
  asked.add_alternatives()->set_objective(v1::OBJECTIVE_ENERGY);
  *asked.mutable_alternatives(0)->mutable_trial() = SampleTrial();
  asked.mutable_alternatives(0)->mutable_trial()->mutable_timing()->mutable_energy()->set_joules(0.011);
  absl::StatusOr<v1::Incumbent> promoted = store().Promote(asked, "", {});
  ASSERT_TRUE(promoted.ok()) << promoted.status();
  EXPECT_EQ(promoted->problem_text(), kProblem);
  EXPECT_EQ(promoted->problem().batch(), 2);
  EXPECT_EQ(promoted->device_id(), kDevice);
  EXPECT_EQ(promoted->policy(), v1::POLICY_HOT);
  EXPECT_EQ(promoted->trial().recipe().launches(0).entry(), "attention");
  EXPECT_EQ(promoted->promote_time().seconds(), 1'800'000'001);
  EXPECT_EQ(promoted->job(), "operations/1");
  EXPECT_EQ(promoted->why(), "12 % faster");
  EXPECT_EQ(promoted->previous(), "");
  EXPECT_FALSE(promoted->rolled_back());
  EXPECT_EQ(promoted->ties(0).text(), "attention_simt:BLOCK_M=32");
  EXPECT_EQ(promoted->claim().tried(), 58);
  EXPECT_EQ(Served()->claim().tried(), 58);
  ASSERT_EQ(promoted->alternatives_size(), 1);
  EXPECT_TRUE(MessageDifferencer::Equals(promoted->alternatives(0), asked.alternatives(0)));
  Reopen();
  absl::StatusOr<v1::Incumbent> served = Served();
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*served, *promoted)) << served->DebugString();
}

TEST_P(IncumbentContract, HasNoneForAProblemNeverTuned) {
  EXPECT_EQ(Served().status().code(), absl::StatusCode::kNotFound);
  MustPromote(SampleTrial(), "");
  EXPECT_EQ(store().GetIncumbent(kProblem, kClass, v1::POLICY_COLD).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().GetIncumbent(kProblem, "h200", v1::POLICY_HOT).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(IncumbentContract, GivesWhatIsServedOfSeveralProblems) {
  const auto of_problem = [&](const std::string& problem, int block) {
    v1::Trial trial = SampleTrial(block);
    trial.set_problem_text(problem);
    return trial;
  };
  const std::string first = MustPromote(SampleTrial(64), "");
  const std::string second = MustPromote(SampleTrial(128), first);
  v1::Trial elsewhere = SampleTrial(64);
  elsewhere.mutable_dependencies()->set_device_fingerprint("h200");
  const std::string h200 = MustPromote(elsewhere, "");
  const std::string other = MustPromote(of_problem("another", 64), "");
  MustPromote(of_problem("a third", 64), "");
  const absl::StatusOr<std::vector<v1::Incumbent>> served = store().IncumbentsOf({"unknown", "another", kProblem});
  ASSERT_TRUE(served.ok()) << served.status();
  std::vector<std::string> names;
  for (const v1::Incumbent& incumbent : *served) names.push_back(incumbent.name());
  EXPECT_THAT(names, testing::UnorderedElementsAre(second, h200, other)) << "of every class, and no former one";
  for (const v1::Incumbent& incumbent : *served) {
    if (incumbent.name() != second) continue;
    EXPECT_TRUE(MessageDifferencer::Equals(incumbent, *Served()));
  }
  EXPECT_THAT(*store().IncumbentsOf({}), testing::IsEmpty());
}

TEST_P(IncumbentContract, NamesTheFormerOneAsPrevious) {
  const std::string first = MustPromote(SampleTrial(64), "");
  const std::string second = MustPromote(SampleTrial(128), first);
  EXPECT_EQ(Served()->name(), second);
  EXPECT_EQ(Served()->previous(), first);
}

TEST_P(IncumbentContract, AbortsWhenSomeoneWasFaster) {
  const std::string first = MustPromote(SampleTrial(64), "");
  EXPECT_EQ(Promote(SampleTrial(128), "").status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Promote(SampleTrial(128), "incumbents/99").status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Served()->name(), first);
}

TEST_P(IncumbentContract, BelongToAClassAndSayWhichCardTimedThem) {
  const std::string first = MustPromote(SampleTrial(64), "");
  EXPECT_EQ(Served()->device_class(), kClass);
  EXPECT_EQ(Promote(OfSister(SampleTrial(128)), "").status().code(), absl::StatusCode::kAborted)
      << "a sister knows what is served";
  const std::string second = MustPromote(OfSister(SampleTrial(128)), first);
  EXPECT_EQ(Served()->name(), second);
  EXPECT_EQ(Served()->device_id(), "cuda:1");
  EXPECT_EQ(Served()->trial().device_uuid(), "GPU-1");
  EXPECT_EQ(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "", "")->name(), first);
  EXPECT_EQ(Served()->device_id(), kDevice);
}

TEST_P(IncumbentContract, OfTwoClassesDoNotMix) {
  const std::string l4 = MustPromote(SampleTrial(), "");
  v1::Trial trial = SampleTrial();
  trial.mutable_dependencies()->set_device_fingerprint("h200");
  const std::string h200 = MustPromote(trial, "");
  EXPECT_EQ(Served()->name(), l4);
  EXPECT_EQ(store().GetIncumbent(kProblem, "h200", v1::POLICY_HOT)->name(), h200);
  EXPECT_THAT(List({.device_class = "h200"}), ElementsAre(h200));
  v1::Incumbent wrong;
  wrong.mutable_trial()->set_name(Append(trial));
  wrong.set_device_class(kClass);
  EXPECT_EQ(store().Promote(wrong, l4, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(IncumbentContract, LetsOneOfManyAtOnceWin) {
  constexpr int kThreads = 8;
  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(Append(SampleTrial()));
  std::atomic<int> won{0};
  std::atomic<int> aborted{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const absl::Status status = store().Promote(incumbent, "", {}).status();
      won += status.ok() ? 1 : 0;
      aborted += status.code() == absl::StatusCode::kAborted ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(aborted, kThreads - 1);
}

TEST_P(IncumbentContract, RefusesATrialThatIsNotOk) {
  v1::Trial wrong = SampleTrial();
  wrong.set_verdict(v1::VERDICT_WRONG_RESULT);
  const absl::Status status = Promote(wrong, "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("WRONG_RESULT"));
}

TEST_P(IncumbentContract, RefusesATrialOfAnotherProblem) {
  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(Append(SampleTrial()));
  incumbent.set_problem_text("b1.h1.q128.d64.f16");
  EXPECT_EQ(store().Promote(incumbent, "", {}).status().code(), absl::StatusCode::kInvalidArgument);
  incumbent.mutable_trial()->set_name("trials/1234");
  EXPECT_EQ(store().Promote(incumbent, "", {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(IncumbentContract, RollsBackToThePreviousOneAndKeepsTheHistory) {
  const std::string first = MustPromote(SampleTrial(64), "");
  const std::string second = MustPromote(SampleTrial(128), first);
  absl::StatusOr<v1::Incumbent> served = store().RollBack(kProblem, kClass, v1::POLICY_HOT, "slow in production", "");
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(served->name(), first);
  EXPECT_FALSE(served->rolled_back());
  EXPECT_EQ(Served()->name(), first);

  absl::StatusOr<Page<v1::Incumbent>> history = store().ListIncumbents({.history = true}, 10, "");
  ASSERT_TRUE(history.ok()) << history.status();
  ASSERT_EQ(history->items.size(), 2U);
  EXPECT_EQ(history->items[0].name(), second);
  EXPECT_TRUE(history->items[0].rolled_back());
  EXPECT_EQ(history->items[0].why(), "fastest; rolled back: slow in production");
  EXPECT_FALSE(history->items[1].rolled_back());
}

TEST_P(IncumbentContract, ARollBackNeedsNoReason) {
  MustPromote(SampleTrial(128), MustPromote(SampleTrial(64), ""));
  ASSERT_TRUE(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "", "").ok());
  const absl::StatusOr<Page<v1::Incumbent>> history = store().ListIncumbents({.history = true}, 10, "");
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->items[0].why(), "fastest; rolled back");
}

TEST_P(IncumbentContract, RollsBackPastNewTimesOfTheSameVariant) {
  const std::string first = MustPromote(SampleTrial(64), "");
  const std::string second = MustPromote(SampleTrial(128), first);
  const std::string retimed = MustPromote(SampleTrial(128), second);
  EXPECT_EQ(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "wrong", "")->name(), first);
  EXPECT_EQ(store().GetIncumbent(kProblem, kClass, v1::POLICY_HOT)->name(), first);
  EXPECT_TRUE(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "", second).status().message().find("rolled back") !=
              std::string::npos)
      << retimed;
}

TEST_P(IncumbentContract, ARollBackThatWouldChangeNoVariantIsRefusedUnlessItIsNamed) {
  const std::string first = MustPromote(SampleTrial(64), "");
  const std::string retimed = MustPromote(SampleTrial(64), first);
  const absl::Status status = store().RollBack(kProblem, kClass, v1::POLICY_HOT, "slow", "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("all before it serve the same variant"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("allowed: " + first));
  EXPECT_EQ(Served()->name(), retimed);
  EXPECT_FALSE(Served()->rolled_back());
  EXPECT_EQ(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "slow", first)->name(), first);
}

TEST_P(IncumbentContract, CannotRollBackTheFirst) {
  EXPECT_EQ(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "", "").status().code(),
            absl::StatusCode::kFailedPrecondition);
  const std::string first = MustPromote(SampleTrial(), "");
  EXPECT_EQ(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "", "").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Served()->name(), first);
}

TEST_P(IncumbentContract, PromotesAfterARollBackFromTheOneServedThen) {
  const std::string first = MustPromote(SampleTrial(64), "");
  const std::string second = MustPromote(SampleTrial(128), first);
  ASSERT_TRUE(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "", "").ok());
  EXPECT_EQ(Promote(SampleTrial(32), second).status().code(), absl::StatusCode::kAborted);
  const std::string third = MustPromote(SampleTrial(32), first);
  EXPECT_EQ(Served()->previous(), first);
  EXPECT_THAT(List({.history = true}), ElementsAre(third, second, first));
  EXPECT_THAT(List({}), ElementsAre(third));
}

TEST_P(IncumbentContract, RollsBackToANamedOneAndTakesOutAllInBetween) {
  const std::string first = MustPromote(SampleTrial(64), "");
  const std::string second = MustPromote(SampleTrial(128), first);
  const std::string third = MustPromote(SampleTrial(32), second);
  absl::StatusOr<v1::Incumbent> served = store().RollBack(kProblem, kClass, v1::POLICY_HOT, "wrong", first);
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(served->name(), first);
  const absl::StatusOr<Page<v1::Incumbent>> history = store().ListIncumbents({.history = true}, 10, "");
  EXPECT_EQ(history->items[0].why(), "fastest; rolled back: wrong");
  EXPECT_TRUE(history->items[1].rolled_back());
  EXPECT_FALSE(history->items[2].rolled_back());
}

TEST_P(IncumbentContract, RollsBackOnlyToOneThatWasServedBefore) {
  const std::string first = MustPromote(SampleTrial(64), "");
  const std::string second = MustPromote(SampleTrial(128), first);
  const std::string third = MustPromote(SampleTrial(32), second);
  v1::Trial elsewhere = SampleTrial(64);
  elsewhere.set_problem_text("b1.h1.q128.d64.f16");
  const std::string others = MustPromote(elsewhere, "");
  for (const std::string& to : {third, std::string("incumbents/99"), std::string("1"), others}) {
    const absl::Status status = store().RollBack(kProblem, kClass, v1::POLICY_HOT, "", to).status();
    EXPECT_EQ(status.code(), to == third ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kNotFound) << to;
    EXPECT_THAT(std::string(status.message()), HasSubstr("to is '" + to + "'"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("allowed: " + second + ", " + first));
    EXPECT_EQ(Served()->name(), third);
    EXPECT_FALSE(Served()->rolled_back());
  }
}

TEST_P(IncumbentContract, SaysWhatIsWrongWithTheNamedOneAlsoWhenTheFirstIsServed) {
  const std::string first = MustPromote(SampleTrial(64), "");
  const auto back_to = [this](const std::string& to) {
    return store().RollBack(kProblem, kClass, v1::POLICY_HOT, "", to).status();
  };
  EXPECT_EQ(back_to("incumbents/99").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(back_to("incumbents/99").message()), HasSubstr("to is 'incumbents/99', which is no"));
  EXPECT_EQ(back_to(first).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(back_to(first).message()), HasSubstr("to is '" + first + "', which is served already"));
}

TEST_P(IncumbentContract, OneThatWasRolledBackIsNotServedAgain) {
  const std::string first = MustPromote(SampleTrial(64), "");
  const std::string second = MustPromote(SampleTrial(128), first);
  ASSERT_TRUE(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "wrong", "").ok());
  const absl::Status status = store().RollBack(kProblem, kClass, v1::POLICY_HOT, "", second).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("was rolled back"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("`attune serve` pins its variant, "));
  EXPECT_EQ(Served()->name(), first);
}

TEST_P(IncumbentContract, KeepsThePlayOffsTimingAndThePin) {
  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(Append(SampleTrial()));
  incumbent.mutable_timing()->set_median_us(33);
  incumbent.set_pinned(true);
  ASSERT_TRUE(store().Promote(incumbent, "", {}).ok());
  Reopen();
  EXPECT_EQ(Served()->timing().median_us(), 33);
  EXPECT_EQ(Served()->trial().timing().median_us(), 40);
  EXPECT_TRUE(Served()->pinned());
  EXPECT_FALSE(store().Unpin(kProblem, kClass, v1::POLICY_HOT)->pinned());
  EXPECT_FALSE(Served()->pinned());
  EXPECT_EQ(store().Unpin("b1.h1.q128.d64.f16", kClass, v1::POLICY_HOT).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(IncumbentContract, RollsBackPastAPinThatWasLifted) {
  const std::string first = MustPromote(SampleTrial(64), "");
  v1::Incumbent pin;
  pin.mutable_trial()->set_name(Append(SampleTrial(128)));
  pin.set_pinned(true);
  const absl::StatusOr<v1::Incumbent> pinned = store().Promote(pin, first, {});
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  ASSERT_TRUE(store().Promote(pin, pinned->name(), {}).ok()) << "with a new time";
  ASSERT_TRUE(store().Unpin(kProblem, kClass, v1::POLICY_HOT).ok());
  EXPECT_EQ(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "wrong", "")->name(), first);
}

TEST_P(IncumbentContract, HasNoPlayOffsTimingWhereNoneWasGiven) {
  MustPromote(SampleTrial(), "");
  EXPECT_FALSE(Served()->has_timing());
  EXPECT_FALSE(Served()->pinned());
}

TEST_P(IncumbentContract, ListsTheServedOnesByFilterAndPage) {
  const std::string first = MustPromote(SampleTrial(64), "");
  const std::string second = MustPromote(SampleTrial(128), first);
  v1::Trial cold = SampleTrial();
  cold.set_policy(v1::POLICY_COLD);
  const std::string of_cold = MustPromote(cold, "");
  v1::Trial other_device = SampleTrial();
  other_device.set_device_id("cuda:1");
  other_device.mutable_dependencies()->set_device_fingerprint("h200");
  const std::string of_other_device = MustPromote(other_device, "");
  v1::Trial other_problem = SampleTrial();
  other_problem.set_problem_text("b1.h1.q128.d64.f16");
  const std::string of_other_problem = MustPromote(other_problem, "");

  EXPECT_THAT(List({}), ElementsAre(of_other_problem, of_other_device, of_cold, second));
  EXPECT_THAT(List({.problem_text = "b1.h1.q128.d64.f16"}), ElementsAre(of_other_problem));
  EXPECT_THAT(List({.device_id = "cuda:1"}), ElementsAre(of_other_device));
  EXPECT_THAT(List({.device_class = "h200"}), ElementsAre(of_other_device));
  EXPECT_THAT(List({.policy = v1::POLICY_COLD}), ElementsAre(of_cold));
  EXPECT_THAT(List({.problem_text = kProblem, .device_id = kDevice, .policy = v1::POLICY_HOT, .history = true}),
              ElementsAre(second, first));
}

INSTANTIATE_TEST_SUITE_P(Store, IncumbentContract, testing::ValuesIn(Implementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
