// The parts of one job that runs here: made, found again, and followed, whichever host works on them.
#ifndef ATTUNE_SERVER_JOBS_LIVE_PARTS_H_
#define ATTUNE_SERVER_JOBS_LIVE_PARTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/catalog/fleet.h"
#include "server/catalog/host.h"
#include "server/jobs/job_kind.h"
#include "server/jobs/live_operation.h"
#include "server/jobs/operations.h"
#include "server/jobs/part_looks.h"
#include "server/jobs/parts.h"
#include "server/jobs/tuner.h"
#include "server/store/queue.h"
#include "server/trials/store_wait.h"

namespace attune::jobs {

class LiveParts final : public Parts {
 public:
  // Who works on those that are this host's.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The cards of this host that a list names; FailedPrecondition when there is none.
    virtual absl::StatusOr<std::vector<const v1::Device*>> CardsHere(const std::string& names) = 0;
    // What is to be made of a request for `cards`, where its kind admits it.
    virtual absl::StatusOr<Operations::Wanted> WantedFor(store::JobKind id, const std::string& request,
                                                         const JobTerms& terms,
                                                         const std::vector<const v1::Device*>& cards,
                                                         const Asker& asker) const = 0;
    // A fresh one of this host's.
    virtual void BeginPart(const Operations::Started& started, const Operations::Wanted& wanted) = 0;
    // There is one that any host may do, this one too.
    virtual void LookForParts() = 0;
  };
  struct Means {  // all live longer
    Owner& owner;
    store::Queue& queue;
    Operations& operations;
    const catalog::Host& host;
    const std::map<store::JobKind, const JobKind*>& kinds;
    std::string holder;
    bool shared = false;  // with other hosts
  };
  LiveParts(Means means, std::shared_ptr<LiveOperation> live);

  absl::StatusOr<std::vector<catalog::FleetCard>> FleetCards() override;
  absl::StatusOr<std::vector<MadePart>> All() override;
  absl::StatusOr<MadePart> Make(const Part& part) override;
  absl::StatusOr<std::vector<v1::Operation>> Get(const std::vector<std::string>& names) override;
  void AwaitChange() override;

 private:
  template <typename Call>
  auto Wait(Call call) -> decltype(call()) {
    return trials::WaitForStore(live_->name(), live_->stop_token(), *live_, call);
  }

  // By way of another host the job was cancelled with its parts, which may all have ended before the next renewal of
  // its lease tells.
  void HearOfCancel();
  // Of the job; empty where it is this host's alone.
  absl::StatusOr<std::string> DeviceClass();
  // This host's first, whether it drains or not.
  std::vector<catalog::FleetCard> CardsOfClass(const std::string& device_class);

  // A part with that request, for one of `cards`.
  absl::StatusOr<Operations::Wanted> WantedOn(const Part& part, const std::string& request,
                                              const std::vector<const v1::Device*>& cards);
  // For cards of this host alone.
  absl::StatusOr<Operations::Wanted> WantedHere(const Part& part);
  // For whichever card of the class is free first, this host's among them; or for the card that it names, which others
  // stand in for while its host is away.
  absl::StatusOr<Operations::Wanted> WantedOfClass(const Part& part, const std::string& device_class);
  absl::StatusOr<MadePart> Start(const Operations::Wanted& wanted, const Part& part);
  // In the store's order.
  absl::StatusOr<std::vector<MadePart>> Made();

  const Means means_;
  const std::shared_ptr<LiveOperation> live_;
  PartLooks looks_;
  std::optional<std::string> device_class_;
  uint64_t seen_ = 0;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_LIVE_PARTS_H_
