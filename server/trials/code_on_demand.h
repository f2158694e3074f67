// Compiles what is asked for: the code of an answer that nobody tuned, when such an answer is first given.
//
// Its own thread looks into the store, submits what is missing and stores what comes back, good or bad, so that a
// look-up only ever reads a table in memory. What is known is bounded in number, and so are the codes under way and
// those who wait for one; nothing but the store outlives the process, and who asks again has it compiled again.
#ifndef ATTUNE_SERVER_TRIALS_CODE_ON_DEMAND_H_
#define ATTUNE_SERVER_TRIALS_CODE_ON_DEMAND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/catalog/answers/code_supply.h"
#include "server/catalog/host.h"
#include "server/store/store.h"
#include "server/supervisor/compile_pool.h"

namespace attune::trials {

class CodeOnDemand final : public catalog::CodeSupply {
 public:
  struct Options {
    size_t most_under_way = 256;  // codes being looked for or compiled
    size_t most_known = 16'384;
    size_t most_waiting = 1024;  // calls of Await
    // How long what the infrastructure failed at is not tried again.
    absl::Duration hold = absl::Seconds(30);
  };

  // All outlive it, but for compiles in flight, which are left to the pool.
  CodeOnDemand(store::Store& store, supervisor::CompilePool& pool, const catalog::Host& host, Options options);
  CodeOnDemand(store::Store& store, supervisor::CompilePool& pool, const catalog::Host& host)
      : CodeOnDemand(store, pool, host, Options()) {}
  ~CodeOnDemand() override;

  catalog::CodeState Ask(const catalog::AnswerPtr& answer) override;
  catalog::CodeState AskForLost(const catalog::AnswerPtr& answer) override;
  void Condemn(absl::string_view compile_key, std::string why) override;
  bool IsUseless(absl::string_view compile_key) const override;
  uint64_t useless() const override;
  void ForgetUseless() override;
  uint64_t version() const override;
  void Await(absl::string_view compile_key, absl::Duration patience, std::function<void()> known) override;

  // Nothing is made any more, and who waits is told so at once. Any thread may call it, again too.
  void Shutdown();

 private:
  struct State;
  class Worker;

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_CODE_ON_DEMAND_H_
