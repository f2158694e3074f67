#include "server/trials/trial_claims.h"

#include "absl/strings/str_cat.h"

namespace attune::trials {
namespace {

std::string TextOf(const store::TrialKey& key) {
  return absl::StrCat(key.problem_text, "\n", key.device.id, "\n", key.device.uuid, "\n", key.variant_text, "\n",
                      static_cast<int>(key.policy), "\n", key.dependencies.SerializeAsString());
}

}  // namespace

TrialClaims::Claim::~Claim() {
  if (claims_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(claims_->mutex_);
  claims_->taken_.erase(key_);
  claims_->changed_.notify_all();
}

std::optional<TrialClaims::Claim> TrialClaims::Take(const store::TrialKey& key, const std::stop_token& stop) {
  std::string text = TextOf(key);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait(lock, stop, [&] { return taken_.insert(text).second; })) return std::nullopt;
  return Claim(this, std::move(text));
}

}  // namespace attune::trials
