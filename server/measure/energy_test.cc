#include "server/measure/energy.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::measure {
namespace {

using ::testing::HasSubstr;

// A card that draws `watts` while runs of `us` go on, whose counter shows the energy of the last full step.
class FakeLoad : public Load {
 public:
  FakeLoad(double us, double watts, double step_s) : us_(us), watts_(watts), step_s_(step_s) {}

  absl::StatusOr<double> Run(int runs) override {
    most_at_once = std::max(most_at_once, runs);
    seconds_ += us_ * runs / 1e6;
    return us_;
  }
  absl::StatusOr<double> ReadJoules() override {
    const double steps = stands_still ? 0 : std::floor(seconds_ / step_s_);
    const double joules = 1000 + steps * step_s_ * watts_;
    return goes_back && seconds_ > 0.3 ? joules - 900 : joules;
  }
  bool Contended() override { return contended; }

  absl::Time now() const { return absl::UnixEpoch() + absl::Seconds(seconds_); }

  bool stands_still = false, goes_back = false, contended = false;
  int most_at_once = 0;

 private:
  double us_, watts_, step_s_, seconds_ = 0;
};

absl::StatusOr<v1::Energy> Measured(FakeLoad& load) {
  EnergyOptions options;
  options.now = [&load] { return load.now(); };
  return MeasureEnergy(load, options);
}

TEST(MeasureEnergy, CountsFromStepToStepOfTheCounter) {
  // 350 W for 100 us: 35 mJ. From any two reads it would be off by up to a step, a third of a span.
  FakeLoad load(100, 350, 0.1);
  const absl::StatusOr<v1::Energy> energy = Measured(load);
  ASSERT_TRUE(energy.ok()) << energy.status();
  EXPECT_NEAR(energy->joules(), 0.035, 0.02 * 0.035);
  EXPECT_NEAR(energy->power_w(), 350, 0.02 * 350);
  EXPECT_LE(energy->low_joules(), energy->joules());
  EXPECT_GE(energy->high_joules(), energy->joules());
  EXPECT_NEAR(energy->high_joules(), energy->low_joules(), 0.04 * 0.035);
  EXPECT_EQ(energy->spans(), 3);
  EXPECT_GE(energy->seconds(), 0.9);
  EXPECT_NEAR(static_cast<double>(energy->runs()) * 100e-6, energy->seconds(), 1e-6);
  EXPECT_FALSE(energy->contended());
  EXPECT_EQ(load.most_at_once, 50);  // 5 ms
}

TEST(MeasureEnergy, OfRunsThatAreLongerThanASpanOneGoesAtATime) {
  FakeLoad load(2e6, 70, 0.1);
  const absl::StatusOr<v1::Energy> energy = Measured(load);
  ASSERT_TRUE(energy.ok()) << energy.status();
  EXPECT_NEAR(energy->joules(), 140, 1e-6);
  EXPECT_EQ(load.most_at_once, 1);
}

TEST(MeasureEnergy, ShortRunsGoAThousandAtOnce) {
  FakeLoad load(1, 70, 0.02);
  const absl::StatusOr<v1::Energy> energy = Measured(load);
  ASSERT_TRUE(energy.ok()) << energy.status();
  EXPECT_NEAR(energy->joules(), 70e-6, 0.02 * 70e-6);
  EXPECT_EQ(load.most_at_once, 1000);
}

TEST(MeasureEnergy, SaysWhyACounterIsNone) {
  FakeLoad still(100, 350, 0.1), back(100, 350, 0.1);
  still.stands_still = true;
  back.goes_back = true;
  const absl::Status stood = Measured(still).status(), went = Measured(back).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(stood));
  EXPECT_THAT(std::string(stood.message()), HasSubstr("stood still at 1000 J for 1s of runs"));
  EXPECT_TRUE(absl::IsFailedPrecondition(went));
  EXPECT_THAT(std::string(went.message()), HasSubstr("went back from"));
}

TEST(MeasureEnergy, RemembersAnotherProcess) {
  FakeLoad load(100, 350, 0.1);
  load.contended = true;
  EXPECT_TRUE(Measured(load)->contended());
}

}  // namespace
}  // namespace attune::measure
