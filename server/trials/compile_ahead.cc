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
    int untaken = 0;               // 0: all were dropped while it compiles
  };
  struct Waiting {
    std::string compile_key;
    Ready ready;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Finished> finished;
  std::deque<Waiting> ready;
  std::map<std::string, Key> keys;  // asked for and not all taken, or still compiled
  size_t wanted = 0;                // keys with candidates that were neither taken nor dropped
  bool exhausted = false;
  bool stopped = false;
  bool ask = true;        // `next` may have something
  bool choosing = false;  // one of those that take
  uint64_t version = 0;   // grows whenever a choice may come out otherwise

  bool OverLocked() const { return stopped || (exhausted && wanted == 0); }
  void PublishLocked(const std::string& compile_key, absl::StatusOr<CodePtr> code) {
    const auto it = keys.find(compile_key);
    if (it->second.untaken == 0) {
      keys.erase(it);
      return;
    }
    Key& key = it->second;
    key.known = true;
    key.code = std::move(code);
    for (size_t candidate : key.waiting) ready.push_back({compile_key, {candidate, key.code}});
    key.waiting.clear();
    NewsLocked();
  }
  void NewsLocked() {
    ++version;
    changed.notify_all();
  }
  void JoinLocked(Key& key) {
    if (key.untaken++ == 0) ++wanted;
  }
  // One candidate of the key less.
  void LeaveLocked(const std::string& compile_key) {
    const auto key = keys.find(compile_key);
    if (--key->second.untaken > 0) return;
    --wanted;
    if (key->second.known) keys.erase(key);
  }
  // One that is ready.
  Ready TakeLocked(size_t candidate) {
    const auto waiting =
        std::find_if(ready.begin(), ready.end(), [&](const Waiting& one) { return one.ready.candidate == candidate; });
    Waiting taken = std::move(*waiting);
    ready.erase(waiting);
    LeaveLocked(taken.compile_key);
    ask = true;
    changed.notify_all();
    return std::move(taken.ready);
  }
  void DropLocked(size_t candidate) {
    const auto waiting =
        std::find_if(ready.begin(), ready.end(), [&](const Waiting& one) { return one.ready.candidate == candidate; });
    if (waiting != ready.end()) {
      const std::string compile_key = waiting->compile_key;
      ready.erase(waiting);
      return LeaveLocked(compile_key);
    }
    for (auto& [compile_key, key] : keys) {
      if (std::erase(key.waiting, candidate) > 0) return LeaveLocked(std::string(compile_key));
    }
  }
};

// The thread's side.
class CompileAhead::Worker {
 public:
  Worker(std::shared_ptr<State> state, Options options, Next next, std::function<void()> compiled)
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
      } else if (!state_->exhausted && state_->ask) {
        const bool room = state_->wanted < static_cast<size_t>(options_.window);
        state_->ask = false;
        lock.unlock();
        Wanted wanted = next_(room);
        lock.lock();
        for (size_t candidate : wanted.dropped) state_->DropLocked(candidate);
        if (wanted.over) state_->exhausted = true;
        // Full before, there may be room now.
        if (wanted.item.has_value() || !wanted.dropped.empty()) state_->ask = true;
        state_->NewsLocked();
        if (!wanted.item.has_value()) continue;
        lock.unlock();
        Accept(*std::move(wanted.item));
        lock.lock();
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
      state_->JoinLocked(key);
      if (key.known) {
        state_->ready.push_back({item.compile_key, {item.candidate, key.code}});
        state_->NewsLocked();
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
        State::Key& key = state_->keys.at(finished.compile_key);
        if (key.untaken > 0 && WorthAnotherTry(finished.response.status(), ++key.tries)) again = key.request;
      }
      if (again) return Submit(finished.compile_key, again);
    }
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->PublishLocked(finished.compile_key, std::move(code));
  }

  const std::shared_ptr<State> state_;
  const Options options_;
  const Next next_;
  const std::function<void()> compiled_;
};

CompileAhead::CompileAhead(Options options, Next next, std::function<void()> compiled)
    : state_(std::make_shared<State>()) {
  options.window = std::max(options.window, 1);
  thread_ = std::thread([worker = std::make_shared<Worker>(state_, std::move(options), std::move(next),
                                                           std::move(compiled))] { worker->Run(); });
}

CompileAhead::~CompileAhead() { End(); }

std::optional<CompileAhead::Ready> CompileAhead::Take(Choose choose) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  bool waits = false;
  while (!state_->stopped && !state_->OverLocked()) {
    // What another chooses must not be among those that are ready here.
    if (state_->choosing) {
      state_->changed.wait(lock, [&] { return !state_->choosing; });
      continue;
    }
    const uint64_t version = state_->version;
    std::vector<size_t> candidates;
    for (const State::Waiting& waiting : state_->ready) candidates.push_back(waiting.ready.candidate);
    state_->choosing = true;
    lock.unlock();
    const search::Choice choice = choose(candidates);
    lock.lock();
    state_->choosing = false;
    state_->changed.notify_all();
    if (choice.what == search::Choice::What::kDone) return std::nullopt;
    if (choice.what == search::Choice::What::kTry) return state_->TakeLocked(choice.candidate);
    if (!std::exchange(waits, true)) {
      state_->ask = true;
      state_->changed.notify_all();
    }
    state_->changed.wait(lock, [&] { return state_->version != version || state_->OverLocked(); });
  }
  return std::nullopt;
}

void CompileAhead::Wake() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->ask = true;
  state_->NewsLocked();
}

bool CompileAhead::over() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->OverLocked();
}

void CompileAhead::Stop() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->stopped = true;
  state_->changed.notify_all();
}

void CompileAhead::End() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace attune::trials
