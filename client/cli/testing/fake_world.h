// A world for RunCli in tests: text instead of a terminal, a fake server, a Ctrl-C that tests press.
#ifndef ATTUNE_CLIENT_CLI_TESTING_FAKE_WORLD_H_
#define ATTUNE_CLIENT_CLI_TESTING_FAKE_WORLD_H_

#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/cli.h"
#include "client/testing/fake_access.h"
#include "client/testing/fake_attune.h"
#include "gtest/gtest.h"

namespace attune::cli {

// Thread-safe.
class FakeInterrupts : public Interrupts {
 public:
  // At the keyboard; when they are used up, Ctrl-C is pressed.
  std::deque<std::string> lines;

  // Ctrl-C.
  void Press() {
    const std::lock_guard lock(mutex_);
    if (on_interrupt_) on_interrupt_();
  }

  std::unique_ptr<Listener> Listen(std::function<void()> on_interrupt) override {
    const std::lock_guard lock(mutex_);
    on_interrupt_ = std::move(on_interrupt);
    return std::make_unique<Handle>(this);
  }
  // SIGTERM has come by then.
  std::unique_ptr<Listener> ListenForEnd(std::function<void()> on_end) override {
    on_end();
    return Listen(std::move(on_end));
  }
  std::optional<std::string> ReadLine() override {
    if (lines.empty()) return std::nullopt;
    std::string line = lines.front();
    lines.pop_front();
    return line;
  }

 private:
  struct Handle : Listener {
    explicit Handle(FakeInterrupts* owner) : interrupts(owner) {}
    ~Handle() override {
      const std::lock_guard lock(interrupts->mutex_);
      interrupts->on_interrupt_ = nullptr;
    }
    FakeInterrupts* const interrupts;
  };

  std::mutex mutex_;  // guards what follows
  std::function<void()> on_interrupt_;
};

// Runs command lines against a FakeAttune.
class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    variables["ATTUNE_SERVER"] = server->address();
    variables["XDG_DATA_HOME"] =
        ::testing::TempDir() + "/data_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(variables["XDG_DATA_HOME"]);  // of a run before this one
  }

  // The exit code; `out` and `err` then hold what was printed.
  int Run(const std::vector<std::string>& arguments) {
    std::ostringstream out_stream;
    std::ostringstream err_stream;
    std::istringstream in_stream(piped);
    auto owned = std::make_unique<FakeInterrupts>();
    interrupts = owned.get();
    interrupts->lines = typed;
    Environment env = {.out = out_stream,
                       .err = err_stream,
                       .in = in_stream,
                       .out_is_terminal = terminal,
                       .err_is_terminal = terminal,
                       .in_is_terminal = terminal,
                       .width = terminal ? width : 0,
                       .variable = [this](const std::string& name) { return variables[name]; },
                       .interrupts = std::move(owned)};
    const int code = RunCli(arguments, env);
    out = out_stream.str();
    err = err_stream.str();
    return code;
  }

  // What `Run` printed, line by line, as JSON.
  std::vector<Json> JsonLines() const {
    std::vector<Json> lines;
    std::istringstream stream(out);
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  attune::testing::FakeAttune fake;
  attune::testing::FakeAccess access;
  std::unique_ptr<attune::testing::RunningServer> server =
      std::make_unique<attune::testing::RunningServer>(&fake, "127.0.0.1:0", &access);
  std::map<std::string, std::string> variables;
  bool terminal = false;
  int width = 100;    // of the terminal
  std::string piped;  // on standard input
  std::deque<std::string> typed;
  FakeInterrupts* interrupts = nullptr;
  std::string out;
  std::string err;
  const std::string problem = attune::testing::FakeAttune::kProblem;
};

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_TESTING_FAKE_WORLD_H_
