// Which trials are being run or written to disk now, by whichever job: jobs on one problem share their trials, and none
// is run twice because the store does not have it yet.
#ifndef ATTUNE_SERVER_TRIALS_TRIAL_CLAIMS_H_
#define ATTUNE_SERVER_TRIALS_TRIAL_CLAIMS_H_

#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "server/store/store.h"

namespace attune::trials {

// Thread-safe. Whoever takes a claim looks into the store next and, when it has no such trial, runs and stores it
// before the claim ends. A claim must not be kept while waiting for a device's turn: who has the turn may wait for the
// claim.
class TrialClaims {
 public:
  // Ends when it is destroyed, at the latest with its TrialClaims.
  class Claim {
   public:
    Claim() = default;
    Claim(Claim&& other) noexcept : claims_(std::exchange(other.claims_, nullptr)), key_(std::move(other.key_)) {}
    Claim& operator=(Claim&& other) noexcept {
      std::swap(claims_, other.claims_);
      std::swap(key_, other.key_);
      return *this;
    }
    ~Claim();

   private:
    friend class TrialClaims;
    Claim(TrialClaims* claims, std::string key) : claims_(claims), key_(std::move(key)) {}

    TrialClaims* claims_ = nullptr;
    std::string key_;
  };

  // Blocks while somebody else has it; nothing once `stop` is requested.
  std::optional<Claim> Take(const store::TrialKey& key, const std::stop_token& stop = {});

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<std::string> taken_;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_TRIAL_CLAIMS_H_
