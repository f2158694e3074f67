#include "server/trials/card_shares.h"

#include <algorithm>
#include <utility>

#include "proto/attune/quote.h"
#include "server/trials/device_slot.h"
#include "server/trials/trial.h"

namespace attune::trials {

CardShares::CardShares(const std::vector<std::string>& ids) : ids_(ids.size()) {
  for (const std::string& id : ids) shares_.emplace_back().id = id;
}

std::vector<CardShares::Share> CardShares::all() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return shares_;
}

CardShares::Share CardShares::of(size_t card) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return shares_[card];
}

void CardShares::Begin(size_t card) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shares_[card].at_work = true;
}

void CardShares::End(size_t card) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shares_[card].at_work = false;
}

void CardShares::Lose(size_t card, const absl::Status& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shares_[card].lost = why;
}

void CardShares::CountTrial(size_t card) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++shares_[card].trials;
}

void CardShares::SetCost(size_t card, absl::Duration busy, const v1::OperationCost& cost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shares_[card].busy = busy;
  shares_[card].cost = cost;
}

void CardShares::HandBack(CompileAhead::Ready ready) {
  const std::lock_guard<std::mutex> lock(mutex_);
  handed_back_.push_back({std::move(ready), std::nullopt});
}

bool CardShares::HandBackLost(size_t card, const CompileAhead::Ready& ready) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!several() || !lost_once_.insert(ready.candidate).second) return false;
  handed_back_.push_back({ready, card});
  return true;
}

bool CardShares::HasFor(size_t card) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return FindLocked(card).has_value();
}

std::optional<CompileAhead::Ready> CardShares::TakeFor(size_t card) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::optional<size_t> at = FindLocked(card);
  if (!at.has_value()) return std::nullopt;
  CompileAhead::Ready ready = std::move(handed_back_[*at].ready);
  handed_back_.erase(handed_back_.begin() + static_cast<std::ptrdiff_t>(*at));
  return ready;
}

bool CardShares::HasAny() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !handed_back_.empty();
}

std::optional<size_t> CardShares::FindLocked(size_t card) const {
  const bool others = OthersAtWorkLocked(card);
  for (size_t i = 0; i < handed_back_.size(); ++i) {
    if (handed_back_[i].lost_by != card || !others) return i;
  }
  return std::nullopt;
}

bool CardShares::OthersAtWorkLocked(size_t card) const {
  for (size_t i = 0; i < shares_.size(); ++i) {
    if (i != card && shares_[i].at_work) return true;
  }
  return false;
}

v1::OperationCost CardShares::CostFrom(size_t first) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  v1::OperationCost cost;
  for (size_t i = first; i < shares_.size(); ++i) cost = SumOf(cost, shares_[i].cost);
  return cost;
}

absl::Duration CardShares::busy() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Duration busy;
  for (const Share& share : shares_) busy += share.busy;
  return busy;
}

int CardShares::at_work() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(
      std::count_if(shares_.begin(), shares_.end(), [](const Share& share) { return share.at_work; }));
}

void CardShares::Tell(v1::OperationProgress& progress) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  progress.clear_cards();
  for (const Share& share : shares_) {
    v1::CardShare& card = *progress.add_cards();
    card.set_device_id(share.id);
    card.set_trials(share.trials);
    card.set_at_work(share.at_work);
    if (!share.lost.ok()) card.set_lost(Cleaned(share.lost.message(), kMostDetail));
  }
}

}  // namespace attune::trials
