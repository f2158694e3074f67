// Each test is a process of its own, which a signal ends.
#include "server/daemon/ending_signals.h"

#include <unistd.h>

#include "gtest/gtest.h"

namespace attune {
namespace {

TEST(EndingSignalsDeathTest, OneIsWaitedForByName) {
  for (const int sent : {SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_EXIT(
        {
          signal(SIGHUP, SIG_DFL);  // nohup hands on that it is ignored
          EndingSignals signals;
          signals.Watch(absl::Hours(1));
          signals.Serving();
          kill(getpid(), sent);
          _exit(signals.Wait() == std::string("SIG") + sigabbrev_np(sent) ? 7 : 8);
        },
        ::testing::ExitedWithCode(7), "");
  }
}

TEST(EndingSignalsDeathTest, OneThatIsIgnoredStaysSo) {
  EXPECT_EXIT(
      {
        signal(SIGHUP, SIG_IGN);
        EndingSignals signals;
        signals.Watch(absl::Hours(1));
        signals.Serving();
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGTERM);
        _exit(signals.Wait() == "SIGTERM" ? 7 : 8);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(EndingSignalsDeathTest, WhileStartingThereIsNothingToDrain) {
  EXPECT_EXIT(
      {
        EndingSignals signals;
        signals.Watch(absl::Hours(1));
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      ::testing::ExitedWithCode(0), "stopped while starting signal=SIGTERM");
}

TEST(EndingSignalsDeathTest, ASecondOneEndsTheDrain) {
  EXPECT_EXIT(
      {
        EndingSignals signals;
        signals.Watch(absl::Hours(1));
        signals.Serving();
        kill(getpid(), SIGTERM);
        signals.Wait();
        kill(getpid(), SIGINT);
        while (true) pause();
      },
      ::testing::ExitedWithCode(1), "stopped at once signal=SIGINT");
}

TEST(EndingSignalsDeathTest, ADrainWithoutEndIsEnded) {
  EXPECT_EXIT(
      {
        EndingSignals signals;
        signals.Watch(absl::Milliseconds(10));
        signals.Serving();
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      ::testing::ExitedWithCode(1), "draining takes too long limit=10ms");
}

}  // namespace
}  // namespace attune
