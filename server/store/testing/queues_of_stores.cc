// The queues of the stores that need nothing beside them: SQLite's and the fake one.
#include <utility>

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
