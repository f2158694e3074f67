// The stores that need nothing beside them, and their queues: SQLite's and the fake one.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "server/store/testing/fake_store.h"
#include "server/store/testing/queue_contract.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

class QueueOfStore : public OpenedQueue {
 public:
  explicit QueueOfStore(std::unique_ptr<Store> store) : store_(std::move(store)) {}
  Queue& queue() override { return store_->queue(); }

 private:
  const std::unique_ptr<Store> store_;
};

}  // namespace

std::vector<Implementation> DurableImplementations() {
  return {{"sqlite", [](const std::string& directory, std::function<absl::Time()> now) {
             return OpenSqliteStore({.directory = directory, .now = std::move(now), .blob_limit = kBlobLimit});
           }}};
}

std::vector<Implementation> Implementations() {
  std::vector<Implementation> all = DurableImplementations();
  auto states = std::make_shared<std::map<std::string, std::shared_ptr<FakeStore::State>>>();  // by directory
  all.push_back({"fake",
                 [states](const std::string& directory,
                          std::function<absl::Time()> now) -> absl::StatusOr<std::unique_ptr<Store>> {
                   std::shared_ptr<FakeStore::State>& state = (*states)[directory];
                   if (state == nullptr) state = FakeStore::MakeState(std::move(now));
                   auto store = std::make_unique<FakeStore>(state);
                   store->blobs().SetLimit(kBlobLimit);
                   return store;
                 }});
  return all;
}

std::vector<QueueImplementation> QueueImplementations() {
  std::vector<QueueImplementation> queues;
  for (const Implementation& implementation : Implementations()) {
    queues.push_back({implementation.name,
                      [open = implementation.open](const std::string& directory, std::function<absl::Time()> now)
                          -> absl::StatusOr<std::unique_ptr<OpenedQueue>> {
                        absl::StatusOr<std::unique_ptr<Store>> store = open(directory, std::move(now));
                        if (!store.ok()) return store.status();
                        return std::make_unique<QueueOfStore>(*std::move(store));
                      }});
  }
  return queues;
}

}  // namespace attune::store
