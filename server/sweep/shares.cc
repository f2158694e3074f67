#include "server/sweep/shares.h"

#include <algorithm>
#include <map>

namespace attune::sweep {
namespace {

size_t PopFront(std::deque<size_t>& queue) {
  const size_t first = queue.front();
  queue.pop_front();
  return first;
}

bool Contains(const std::vector<std::string>& cards, const std::string& card) {
  return std::find(cards.begin(), cards.end(), card) != cards.end();
}

}  // namespace

Shares::Shares(const std::vector<CardClass>& classes) : classes_(classes.size()) {
  for (size_t i = 0; i < classes.size(); ++i) {
    for (const v1::Device* card : classes[i]) classes_[i].cards.push_back(card->id());
  }
}

void Shares::Add(size_t problem, size_t card_class, const std::string& card) {
  OfClass& of = classes_.at(card_class);
  (card.empty() ? of.shared : of.by_card[card]).push_back(problem);
}

void Shares::Retire(const std::string& card) {
  for (OfClass& of : classes_) {
    if (std::erase(of.cards, card) > 0) of.retired.insert(card);
  }
}

void Shares::SetFleet(size_t card_class, const std::vector<std::string>& cards, size_t each) {
  OfClass& of = classes_.at(card_class);
  of.fleet = true;
  of.each = each;
  of.cards.clear();
  for (const std::string& card : cards) {
    if (!of.retired.contains(card)) of.cards.push_back(card);
  }
  for (auto& [card, own] : of.by_card) {
    if (Contains(of.cards, card) || of.retired.contains(card)) continue;
    of.shared.insert(of.shared.end(), own.begin(), own.end());
    own.clear();
  }
}

std::optional<Shares::Next> Shares::TakeOf(size_t card_class, const std::vector<AtHand>& at_hand) {
  OfClass& of = classes_[card_class];
  size_t taken = 0;
  std::map<std::string, size_t> busy;
  for (const AtHand& one : at_hand) {
    if (one.card_class != card_class || !(one.card.empty() || Contains(of.cards, one.card))) continue;
    ++taken;
    ++busy[one.card];
  }
  if (taken >= of.cards.size() * of.each) return std::nullopt;
  for (const std::string& card : of.cards) {
    std::deque<size_t>& own = of.by_card[card];
    if (!own.empty() && busy[card] < of.each) return Next{PopFront(own), card_class, {card}};
  }
  if (of.shared.empty() || IsHopeless(of)) return std::nullopt;
  return Next{PopFront(of.shared), card_class, of.fleet ? std::vector<std::string>() : of.cards};
}

std::optional<Shares::Next> Shares::Take(const std::vector<AtHand>& at_hand) {
  for (size_t i = 0; i < classes_.size(); ++i) {
    if (std::optional<Next> next = TakeOf(i, at_hand); next.has_value()) return next;
  }
  return std::nullopt;
}

std::optional<size_t> Shares::TakeHopeless() {
  for (OfClass& of : classes_) {
    if (IsHopeless(of) && !of.shared.empty()) return PopFront(of.shared);
    for (auto& [card, own] : of.by_card) {
      if (!own.empty() && !Contains(of.cards, card)) return PopFront(own);
    }
  }
  return std::nullopt;
}

}  // namespace attune::sweep
