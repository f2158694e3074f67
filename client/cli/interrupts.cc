#include "client/cli/interrupts.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace attune::cli {
namespace {

// Where the signal handler says that there was a signal. A handler can reach nothing but what is static.
std::atomic<int> signal_event{-1};

void OnSignal(int) {
  const int saved_errno = errno;
  const uint64_t one = 1;
  if (write(signal_event.load(), &one, sizeof(one)) < 0) {
    // A full counter still wakes the reader, which is all that is wanted.
  }
  errno = saved_errno;
}

class Event {
 public:
  Event() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Event() { close(fd_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  int fd() const { return fd_; }
  void Set() const { eventfd_write(fd_, 1); }
  void Clear() const {
    eventfd_t count = 0;
    eventfd_read(fd_, &count);
  }

 private:
  const int fd_;
};

// The signals set `event` while this lives; before and after, they do what they did.
class SignalEvent {
 public:
  explicit SignalEvent(const std::vector<int>& signals) {
    signal_event = event_.fd();
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const int signal : signals) sigaction(signal, &action, &before_[signal]);
  }
  ~SignalEvent() {
    for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
    signal_event = -1;
  }
  SignalEvent(const SignalEvent&) = delete;
  SignalEvent& operator=(const SignalEvent&) = delete;

  const Event& event() const { return event_; }

 private:
  Event event_;
  std::map<int, struct sigaction> before_;
};

// True when `a` is the one that has something to read; false when it is `b` alone.
bool WaitForFirst(int a, int b) {
  for (;;) {
    pollfd fds[] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (fds[0].revents != 0) return true;
    if (fds[1].revents != 0) return false;
  }
}

class SignalListener : public Interrupts::Listener {
 public:
  SignalListener(const std::vector<int>& signals, std::function<void()> on_signal)
      : signals_(signals), thread_([this, on_signal = std::move(on_signal)] {
          while (!WaitForFirst(stop_.fd(), signals_.event().fd())) {
            signals_.event().Clear();
            on_signal();
          }
        }) {}
  ~SignalListener() override {
    stop_.Set();
    thread_.join();
  }

 private:
  Event stop_;
  SignalEvent signals_;
  std::thread thread_;
};

class SignalInterrupts : public Interrupts {
 public:
  std::unique_ptr<Listener> Listen(std::function<void()> on_interrupt) override {
    return std::make_unique<SignalListener>(std::vector<int>{SIGINT}, std::move(on_interrupt));
  }
  std::unique_ptr<Listener> ListenForEnd(std::function<void()> on_end) override {
    return std::make_unique<SignalListener>(std::vector<int>{SIGINT, SIGTERM}, std::move(on_end));
  }

  std::optional<std::string> ReadLine() override {
    const SignalEvent sigint({SIGINT});
    std::string line;
    for (;;) {
      if (WaitForFirst(sigint.event().fd(), STDIN_FILENO)) return std::nullopt;
      char c = 0;
      const ssize_t got = read(STDIN_FILENO, &c, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return std::nullopt;
      if (c == '\n') return line;
      line.push_back(c);
    }
  }
};

}  // namespace

std::unique_ptr<Interrupts> ProcessInterrupts() { return std::make_unique<SignalInterrupts>(); }

}  // namespace attune::cli
