#include "server/trials/code_on_demand.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/deadline.h"
#include "server/base/log.h"
#include "server/catalog/answers/answer_code.h"
#include "server/space/space.h"
#include "server/trials/code.h"
#include "server/trials/job.h"

namespace attune::trials {
namespace {

using catalog::AnswerPtr;
using catalog::CodeState;

CodeState NoCode(std::string why) { return {v1::ARTIFACT_STATE_NONE, "", std::move(why)}; }

}  // namespace

// Shared with the pool's callbacks, which may come after the CodeOnDemand is gone.
struct CodeOnDemand::State {
  struct Known {
    CodeState code;
    bool useless = false;
    bool held = false;  // NONE, but not for good
  };
  struct Order {
    AnswerPtr answer;
    int tries = 0;
  };
  struct Finished {
    Order order;
    absl::StatusOr<worker::v1::CompileResponse> response;
  };
  struct Waiting {
    std::string compile_key;
    Deadline until;
    std::function<void()> known;
  };

  explicit State(Options chosen) : options(chosen) {}

  const Options options;
  mutable std::mutex mutex;  // guards what follows up to the blank line
  std::condition_variable changed;
  std::unordered_map<std::string, Known> known;  // by compile key
  std::deque<Order> orders;                      // not yet looked for
  size_t under_way = 0;                          // COMPILING among `known`
  size_t submitted = 0;                          // to the pool, and not yet back
  std::deque<Finished> finished;
  std::vector<Waiting> waiting;
  std::deque<std::pair<Deadline, std::string>> held;  // until when, in that order, and compile keys
  bool stopped = false;

  std::atomic<uint64_t> version = 0;
  std::atomic<uint64_t> useless = 0;

  CodeState AskLocked(const AnswerPtr& answer) {
    if (const auto it = known.find(answer->compile_key); it != known.end()) return it->second.code;
    if (stopped) return NoCode("the daemon is stopping");
    if (under_way >= options.most_under_way) {
      return NoCode(absl::StrCat(under_way, " codes are being compiled already; ask again later"));
    }
    if (known.size() >= options.most_known) {
      std::erase_if(known, [](const auto& one) { return one.second.code.state != v1::ARTIFACT_STATE_COMPILING; });
    }
    ++under_way;
    orders.push_back({answer});
    changed.notify_all();
    return known[answer->compile_key].code = {v1::ARTIFACT_STATE_COMPILING, "", ""};
  }

  // What has become of a code that was under way. Those who waited for it are to be told without the lock.
  std::vector<std::function<void()>> LearnLocked(const std::string& compile_key, Known what) {
    if (what.useless) ++useless;
    if (what.held) held.emplace_back(After(options.hold), compile_key);
    known[compile_key] = std::move(what);
    --under_way;
    ++version;
    return TakeLocked([&](const Waiting& one) { return one.compile_key == compile_key; });
  }

  template <typename Which>
  std::vector<std::function<void()>> TakeLocked(const Which& which) {
    std::vector<std::function<void()>> taken;
    std::erase_if(waiting, [&](Waiting& one) {
      if (!which(one)) return false;
      taken.push_back(std::move(one.known));
      return true;
    });
    return taken;
  }
};

// The thread's side.
class CodeOnDemand::Worker {
 public:
  Worker(std::shared_ptr<State> state, store::Store& store, supervisor::CompilePool& pool, const catalog::Host& host)
      : state_(std::move(state)), store_(store), pool_(pool), host_(host) {}

  void Run() {
    std::unique_lock<std::mutex> lock(state_->mutex);
    while (!state_->stopped) {
      if (!state_->finished.empty()) {
        State::Finished finished = std::move(state_->finished.front());
        state_->finished.pop_front();
        lock.unlock();
        Keep(std::move(finished));
        lock.lock();
      } else if (!state_->orders.empty() && state_->submitted < 2 * static_cast<size_t>(pool_.size())) {
        State::Order order = std::move(state_->orders.front());
        state_->orders.pop_front();
        lock.unlock();
        Find(std::move(order));
        lock.lock();
      } else {
        Pass(lock);
      }
    }
  }

 private:
  // What time alone ends: the patience of who waits, and the hold on what failed. Then until there is something to do.
  void Pass(std::unique_lock<std::mutex>& lock) {
    const Deadline now = std::chrono::steady_clock::now();
    const auto impatient = state_->TakeLocked([&](const State::Waiting& one) { return one.until <= now; });
    if (!impatient.empty()) {
      lock.unlock();
      for (const auto& known : impatient) known();
      lock.lock();
      return;
    }
    std::optional<Deadline> next;
    const auto consider = [&next](Deadline moment) { next = next.has_value() ? std::min(*next, moment) : moment; };
    for (const State::Waiting& one : state_->waiting) consider(one.until);
    for (; !state_->held.empty() && state_->held.front().first <= now; state_->held.pop_front()) {
      const auto it = state_->known.find(state_->held.front().second);
      if (it == state_->known.end() || !it->second.held) continue;
      state_->known.erase(it);
      ++state_->version;
    }
    if (!state_->held.empty()) consider(state_->held.front().first);
    if (next.has_value()) {
      state_->changed.wait_until(lock, *next);
    } else {
      state_->changed.wait(lock);
    }
  }

  void Find(State::Order order) {
    const catalog::Answer& answer = *order.answer;
    const absl::StatusOr<CodePtr> found = FindCode(store_, answer.compile_key, answer.toolchain);
    if (found.ok()) return LearnFrom((*found)->report, answer);
    if (!absl::IsNotFound(found.status())) return Fail(answer, found.status());
    Submit(std::move(order));
  }

  void Submit(State::Order order) {
    const catalog::Answer& answer = *order.answer;
    const v1::Device* const device = catalog::DeviceOfClass(host_, answer.device_class);
    if (device == nullptr) return Fail(answer, absl::NotFoundError("no device of its class is here"));
    if (absl::StatusOr<std::string> toolchain = pool_.Toolchain(device->backend()); !toolchain.ok()) {
      return Fail(answer, toolchain.status());
    }
    absl::StatusOr<space::CompileSpec> spec = space::SpecFor(*answer.variant, answer.problem, *device);
    if (!spec.ok()) return Fail(answer, spec.status());
    {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      ++state_->submitted;
    }
    pool_.Submit(MakeCompileRequest(*answer.variant->family, *spec, *device),
                 CompilePriority(Priority::kInteractive, /*awaited=*/true),
                 [state = state_, order = std::move(order)](absl::StatusOr<worker::v1::CompileResponse> response) {
                   const std::lock_guard<std::mutex> lock(state->mutex);
                   --state->submitted;
                   state->finished.push_back({order, std::move(response)});
                   state->changed.notify_all();
                 });
  }

  void Keep(State::Finished finished) {
    const catalog::Answer& answer = *finished.order.answer;
    if (!finished.response.ok()) {
      return WorthAnotherTry(finished.response.status(), ++finished.order.tries)
                 ? Submit(std::move(finished.order))
                 : Fail(answer, finished.response.status());
    }
    const absl::StatusOr<CodePtr> kept =
        KeepCode(store_, answer.compile_key, answer.toolchain, *std::move(finished.response));
    if (!kept.ok()) return Fail(answer, kept.status());
    LearnFrom((*kept)->report, answer);
  }

  void LearnFrom(const store::CompiledArtifact& report, const catalog::Answer& answer) {
    const std::string why = catalog::WhyUseless(report, answer, host_);
    if (why.empty()) return Learn(answer, {{v1::ARTIFACT_STATE_READY, report.sha256, ""}});
    LogWarning("the code of an answer is useless", {{"variant", answer.variant->ToText()}, {"why", why}});
    Learn(answer, {NoCode(why), /*useless=*/true});
  }

  // The infrastructure's doing: nothing is said of the code.
  void Fail(const catalog::Answer& answer, const absl::Status& status) {
    LogWarning("the code of an answer could not be made",
               {{"variant", answer.variant->ToText()}, {"why", status.message()}});
    Learn(answer, {NoCode(std::string(status.message())), /*useless=*/false, /*held=*/true});
  }

  void Learn(const catalog::Answer& answer, State::Known what) {
    std::vector<std::function<void()>> told;
    {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      told = state_->LearnLocked(answer.compile_key, std::move(what));
    }
    for (const auto& known : told) known();
  }

  const std::shared_ptr<State> state_;
  store::Store& store_;
  supervisor::CompilePool& pool_;
  const catalog::Host& host_;
};

CodeOnDemand::CodeOnDemand(store::Store& store, supervisor::CompilePool& pool, const catalog::Host& host,
                           Options options)
    : state_(std::make_shared<State>(options)) {
  thread_ = std::thread([worker = std::make_shared<Worker>(state_, store, pool, host)] { worker->Run(); });
}

CodeOnDemand::~CodeOnDemand() {
  Shutdown();
  thread_.join();
}

CodeState CodeOnDemand::Ask(const AnswerPtr& answer) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->AskLocked(answer);
}

CodeState CodeOnDemand::AskForLost(const AnswerPtr& answer) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto it = state_->known.find(answer->compile_key);
  if (it != state_->known.end() && it->second.code.state == v1::ARTIFACT_STATE_READY) {
    state_->known.erase(it);
    ++state_->version;
  }
  return state_->AskLocked(answer);
}

void CodeOnDemand::Condemn(absl::string_view compile_key, std::string why) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  State::Known& known = state_->known[std::string(compile_key)];
  // One that is under way is not yet what the trial had.
  if (known.useless || known.code.state == v1::ARTIFACT_STATE_COMPILING) return;
  known = {NoCode(std::move(why)), /*useless=*/true};
  ++state_->useless;
  ++state_->version;
}

bool CodeOnDemand::IsUseless(absl::string_view compile_key) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto it = state_->known.find(std::string(compile_key));
  return it != state_->known.end() && it->second.useless;
}

uint64_t CodeOnDemand::useless() const { return state_->useless; }

void CodeOnDemand::ForgetUseless() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (std::erase_if(state_->known, [](const auto& one) { return one.second.useless; }) == 0) return;
  ++state_->useless;  // what was derived without them is derived anew
  ++state_->version;
}

uint64_t CodeOnDemand::version() const { return state_->version; }

void CodeOnDemand::Await(absl::string_view compile_key, absl::Duration patience, std::function<void()> known) {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    const auto it = state_->known.find(std::string(compile_key));
    if (it != state_->known.end() && it->second.code.state == v1::ARTIFACT_STATE_COMPILING && !state_->stopped &&
        state_->waiting.size() < state_->options.most_waiting) {
      state_->waiting.push_back({it->first, After(patience), std::move(known)});
      state_->changed.notify_all();
      return;
    }
  }
  known();
}

void CodeOnDemand::Shutdown() {
  std::vector<std::function<void()>> told;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stopped = true;
    told = state_->TakeLocked([](const State::Waiting&) { return true; });
    state_->changed.notify_all();
  }
  for (const auto& known : told) known();
}

}  // namespace attune::trials
