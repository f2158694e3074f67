// The families that a host tunes and serves. They may change while others read: each reader has those of one moment.
#ifndef ATTUNE_SERVER_CATALOG_FAMILY_LIST_H_
#define ATTUNE_SERVER_CATALOG_FAMILY_LIST_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/space/family.h"

namespace attune::catalog {

// Thread-safe. A copy is a list of its own.
class FamilyList {
 public:
  using Families = std::vector<std::shared_ptr<const space::Family>>;

  FamilyList() = default;
  FamilyList(Families families) : families_(std::move(families)) {}  // NOLINT(google-explicit-constructor)
  FamilyList(const FamilyList& other) : families_(other.Now()) {}
  FamilyList& operator=(const FamilyList& other) {
    if (this == &other) return *this;
    Families families = other.Now();
    const std::lock_guard<std::mutex> lock(mutex_);
    families_ = std::move(families);
    return *this;
  }

  Families Now() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return families_;
  }
  // What only reads families takes those of now.
  operator Families() const { return Now(); }  // NOLINT(google-explicit-constructor)

  // In the place of one of the same name, if there is one.
  void Add(std::shared_ptr<const space::Family> family) {
    const std::lock_guard<std::mutex> lock(mutex_);
    RemoveLocked(family->name());
    families_.push_back(std::move(family));
  }
  void Remove(absl::string_view name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    RemoveLocked(name);
  }

 private:
  void RemoveLocked(absl::string_view name) {
    std::erase_if(families_, [name](const auto& family) { return family->name() == name; });
  }

  mutable std::mutex mutex_;
  Families families_;
};

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_FAMILY_LIST_H_
