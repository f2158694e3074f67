// Each test is a process of its own, which a signal ends.
#include "server/daemon/shutdown_signals.h"

#include <unistd.h>

#include "gtest/gtest.h"

namespace attune {
namespace {

TEST(ShutdownSignalsDeathTest, OneIsWaitedForByName) {
  for (const int sent : {SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_EXIT(
        {
          signal(SIGHUP, SIG_DFL);  // nohup hands on that it is ignored
          ShutdownSignals signals;
          signals.Watch(absl::Hours(1));
          signals.Serving();
          kill(getpid(), sent);
          _exit(signals.Wait() == std::string("SIG") + sigabbrev_np(sent) ? 7 : 8);
        },
        ::testing::ExitedWithCode(7), "");
  }
}

TEST(ShutdownSignalsDeathTest, OneThatIsIgnoredStaysSo) {
  EXPECT_EXIT(
      {
        signal(SIGHUP, SIG_IGN);
        ShutdownSignals signals;
        signals.Watch(absl::Hours(1));
        signals.Serving();
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGTERM);
        _exit(signals.Wait() == "SIGTERM" ? 7 : 8);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(ShutdownSignalsDeathTest, WhileStartingThereIsNothingToDrain) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        signals.Watch(absl::Hours(1));
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      ::testing::ExitedWithCode(0), "stopped while starting signal=SIGTERM");
}

TEST(ShutdownSignalsDeathTest, ASecondOneEndsTheDrain) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        signals.Watch(absl::Hours(1));
        signals.Serving();
        kill(getpid(), SIGTERM);
        signals.Wait();
        kill(getpid(), SIGINT);
        while (true) pause();
      },
      ::testing::ExitedWithCode(1), "stopped at once signal=SIGINT");
}

TEST(ShutdownSignalsDeathTest, ADrainWithoutEndIsEnded) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        signals.Watch(absl::Milliseconds(10));
        signals.Serving();
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      ::testing::ExitedWithCode(1), "draining takes too long limit=10ms");
}

}  // namespace
}  // namespace attune
