#include "server/trials/compile_ahead.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/trials/store_wait.h"

namespace attune::trials {
// Shared with the pool's callbacks, which may come after the CompileAhead is gone.
struct CompileAhead::State {
  struct Finished {
    std::string compile_key;
    absl::StatusOr<worker::v1::CompileResponse> response;
  };
  struct Key {
    std::vector<size_t> waiting;  // candidates, while it is not known
    std::function<worker::v1::CompileRequest()> request;
    int tries = 0;
    bool known = false;
    absl::StatusOr<CodePtr> code;  // once known
    int untaken = 0;
  };
  struct Waiting {
    std::string compile_key;
    Ready ready;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Finished> finished;
  std::deque<Waiting> ready;
  std::map<std::string, Key> keys;  // asked for and not all taken
  bool exhausted = false;
  bool stopped = false;

  bool OverLocked() const { return stopped || (exhausted && keys.empty()); }
  void PublishLocked(const std::string& compile_key, absl::StatusOr<CodePtr> code) {
    Key& key = keys[compile_key];
    key.known = true;
    key.code = std::move(code);
    for (size_t candidate : key.waiting) ready.push_back({compile_key, {candidate, key.code}});
    key.waiting.clear();
    changed.notify_all();
  }
};

// The thread's side.
class CompileAhead::Worker {
 public:
  Worker(std::shared_ptr<State> state, Options options, std::function<std::optional<Item>()> next,
         std::function<void()> compiled)
      : state_(std::move(state)),
        options_(std::move(options)),
        next_(std::move(next)),
        compiled_(std::move(compiled)) {}

  void Run() {
    std::unique_lock<std::mutex> lock(state_->mutex);
    while (!state_->OverLocked()) {
      if (!state_->finished.empty()) {
        State::Finished finished = std::move(state_->finished.front());
        state_->finished.pop_front();
        lock.unlock();
        Keep(std::move(finished));
        lock.lock();
      } else if (!state_->exhausted && state_->keys.size() < static_cast<size_t>(options_.window)) {
        lock.unlock();
        std::optional<Item> item = next_();
        const bool more = item.has_value();
        if (more) Accept(*std::move(item));
        lock.lock();
        if (!more) {
          state_->exhausted = true;
          state_->changed.notify_all();
        }
      } else {
        state_->changed.wait(lock);
      }
    }
  }

 private:
  void Accept(Item item) {
    {
      std::lock_guard<std::mutex> lock(state_->mutex);
      auto [it, fresh] = state_->keys.try_emplace(item.compile_key);
      State::Key& key = it->second;
      ++key.untaken;
      if (key.known) {
        state_->ready.push_back({item.compile_key, {item.candidate, key.code}});
        state_->changed.notify_all();
        return;
      }
      key.waiting.push_back(item.candidate);
      if (!fresh) return;
      key.request = item.request;
    }
    absl::StatusOr<CodePtr> code =
        ReadFor(*options_.job, [&] { return FindCode(*options_.store, item.compile_key, options_.toolchain); });
    const bool quarantined = code.ok() && (*code)->report.verdict != v1::VERDICT_OK;
    if (absl::IsNotFound(code.status()) || (quarantined && options_.ignore_quarantine)) {
      Submit(item.compile_key, item.request);
    } else {
      std::lock_guard<std::mutex> lock(state_->mutex);
      state_->PublishLocked(item.compile_key, std::move(code));
    }
  }

  void Submit(const std::string& compile_key, const std::function<worker::v1::CompileRequest()>& request) {
    options_.pool->Submit(request(), options_.priority,
                          [state = state_, compile_key](absl::StatusOr<worker::v1::CompileResponse> response) {
                            std::lock_guard<std::mutex> lock(state->mutex);
                            state->finished.push_back({compile_key, std::move(response)});
                            state->changed.notify_all();
                          });
  }

  void Keep(State::Finished finished) {
    absl::StatusOr<CodePtr> code = absl::UnknownError("nothing came back");
    if (finished.response.ok()) {
      code = KeepCode(*options_.store, finished.compile_key, options_.toolchain, *std::move(finished.response),
                      *options_.job);
      compiled_();
    } else {
      code = finished.response.status();
    }
    if (!finished.response.ok()) {
      std::function<worker::v1::CompileRequest()> again;
      {
        std::lock_guard<std::mutex> lock(state_->mutex);
        State::Key& key = state_->keys[finished.compile_key];
        if (WorthAnotherTry(finished.response.status(), ++key.tries)) again = key.request;
      }
      if (again) return Submit(finished.compile_key, again);
    }
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->PublishLocked(finished.compile_key, std::move(code));
  }

  const std::shared_ptr<State> state_;
  const Options options_;
  const std::function<std::optional<Item>()> next_;
  const std::function<void()> compiled_;
};

CompileAhead::CompileAhead(Options options, std::function<std::optional<Item>()> next, std::function<void()> compiled)
    : state_(std::make_shared<State>()) {
  options.window = std::max(options.window, 1);
  thread_ = std::thread([worker = std::make_shared<Worker>(state_, std::move(options), std::move(next),
                                                           std::move(compiled))] { worker->Run(); });
}

CompileAhead::~CompileAhead() {
  Stop();
  thread_.join();
}

std::optional<CompileAhead::Ready> CompileAhead::Take() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->changed.wait(lock, [this] { return !state_->ready.empty() || state_->OverLocked(); });
  if (state_->stopped || state_->ready.empty()) return std::nullopt;
  State::Waiting waiting = std::move(state_->ready.front());
  state_->ready.pop_front();
  const auto key = state_->keys.find(waiting.compile_key);
  if (--key->second.untaken == 0) state_->keys.erase(key);
  state_->changed.notify_all();
  return std::move(waiting.ready);
}

void CompileAhead::Stop() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->stopped = true;
  state_->changed.notify_all();
}

}  // namespace attune::trials
