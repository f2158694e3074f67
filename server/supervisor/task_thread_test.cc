#include "server/supervisor/task_thread.h"

#include <vector>

#include "gtest/gtest.h"

namespace attune::supervisor {
namespace {

TEST(TaskThread, RunsEveryTaskOnItsOneThread) {
  TaskThread thread;
  const std::thread::id first = thread.Run([] { return std::this_thread::get_id(); });
  EXPECT_NE(first, std::this_thread::get_id());
  std::thread::id second;
  std::thread([&] { second = thread.Run([] { return std::this_thread::get_id(); }); }).join();
  EXPECT_EQ(first, second);
}

TEST(TaskThread, CallersTakeTurns) {
  TaskThread thread;
  int running = 0;
  int most = 0;
  int done = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int j = 0; j < 50; ++j) {
        thread.Run([&] {
          most = std::max(most, ++running);
          --running;
          return ++done;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(done, 400);
}

}  // namespace
}  // namespace attune::supervisor
