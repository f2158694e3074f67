#include "server/jobs/live_parts.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "proto/attune/device_list.h"
#include "server/store/hosts.h"

namespace attune::jobs {
namespace {

// How often a job looks at those of its parts that other hosts have.
constexpr absl::Duration kPartLook = absl::Seconds(1);

}  // namespace

LiveParts::LiveParts(Means means, std::shared_ptr<LiveOperation> live)
    : means_(std::move(means)),
      live_(std::move(live)),
      looks_(means_.operations, live_->name(), means_.shared ? kPartLook : absl::ZeroDuration()) {}

absl::StatusOr<std::vector<catalog::FleetCard>> LiveParts::FleetCards() {
  const absl::StatusOr<std::string> device_class = DeviceClass();
  if (!device_class.ok()) return device_class.status();
  if (device_class->empty()) return std::vector<catalog::FleetCard>();
  return CardsOfClass(*device_class);
}

absl::StatusOr<std::vector<MadePart>> LiveParts::All() {
  return Wait([this] { return Made(); });
}

absl::StatusOr<MadePart> LiveParts::Make(const Part& part) {
  const absl::StatusOr<std::string> device_class = DeviceClass();
  if (!device_class.ok()) return device_class.status();
  const absl::StatusOr<Operations::Wanted> wanted =
      device_class->empty() ? WantedHere(part) : WantedOfClass(part, *device_class);
  if (!wanted.ok()) return wanted.status();
  return Wait([&] { return Start(*wanted, part); });
}

absl::StatusOr<std::vector<v1::Operation>> LiveParts::Get(const std::vector<std::string>& names) {
  absl::StatusOr<std::vector<v1::Operation>> parts = Wait([&] { return looks_.At(names); });
  const bool some_cancelled = parts.ok() && std::any_of(parts->begin(), parts->end(), [](const auto& part) {
                                return part.state() == v1::Operation::STATE_CANCELLED;
                              });
  if (some_cancelled) HearOfCancel();
  return parts;
}

void LiveParts::AwaitChange() {
  // Of parts that another holder has, the store alone knows; it is asked now and then.
  seen_ = means_.operations.part_changes().Await(seen_, live_->stop_token(), kPartLook);
}

void LiveParts::HearOfCancel() {
  const absl::StatusOr<store::Job> job = means_.queue.Get(live_->name());
  if (job.ok() && job->cancelled) live_->RequestStop(/*cancel=*/true);
}

absl::StatusOr<std::string> LiveParts::DeviceClass() {
  if (!means_.shared) return "";
  if (!device_class_.has_value()) {
    absl::StatusOr<store::Job> job = Wait([this] { return means_.queue.Get(live_->name()); });
    if (!job.ok()) return job.status();
    device_class_ = std::move(job->device_class);
  }
  return *device_class_;
}

std::vector<catalog::FleetCard> LiveParts::CardsOfClass(const std::string& device_class) {
  std::vector<catalog::FleetCard> cards;
  const std::string here = store::HostName(means_.holder);
  for (const v1::Device& device : means_.host.devices) {
    if (device.fingerprint() != device_class || !means_.owner.CardsHere(device.id()).ok()) continue;
    cards.push_back({here, device});
  }
  for (catalog::FleetCard& card : means_.host.fleet->CardsOf(device_class)) {
    if (card.host != here) cards.push_back(std::move(card));
  }
  return cards;
}

absl::StatusOr<Operations::Wanted> LiveParts::WantedOn(const Part& part, const std::string& request,
                                                       const std::vector<const v1::Device*>& cards) {
  const absl::StatusOr<JobTerms> terms = means_.kinds.at(part.kind)->Terms(request);
  if (!terms.ok()) return terms.status();
  Asker asker;
  asker.principal = live_->principal();
  asker.trace = live_->trace();
  absl::StatusOr<Operations::Wanted> wanted = means_.owner.WantedFor(part.kind, request, *terms, cards, asker);
  if (!wanted.ok()) return wanted.status();
  wanted->parent = live_->name();
  wanted->name = PartName(live_->name(), part.key);
  return wanted;
}

absl::StatusOr<Operations::Wanted> LiveParts::WantedHere(const Part& part) {
  const std::string names = ListOfCards(part.cards);
  const absl::StatusOr<std::vector<const v1::Device*>> cards = means_.owner.CardsHere(names);
  if (!cards.ok()) return cards.status();
  absl::StatusOr<Operations::Wanted> wanted =
      WantedOn(part, means_.kinds.at(part.kind)->On(part.request, names), *cards);
  if (wanted.ok() && means_.shared) wanted->home = means_.holder;
  return wanted;
}

absl::StatusOr<Operations::Wanted> LiveParts::WantedOfClass(const Part& part, const std::string& device_class) {
  const JobKind& kind = *means_.kinds.at(part.kind);
  for (const catalog::FleetCard& card : CardsOfClass(device_class)) {
    const std::string name = catalog::CardName(card.host, card.device.id());
    if (part.cards.size() != 1 || part.cards.front() != name) continue;
    absl::StatusOr<Operations::Wanted> wanted = WantedOn(part, kind.On(part.request, card.device.id()), {&card.device});
    if (!wanted.ok()) return wanted.status();
    wanted->device_class = device_class;
    wanted->home = store::HolderOf(card.host);
    wanted->here = wanted->home == means_.holder;
    return wanted;
  }
  const v1::Device* of_class = means_.host.fleet->FindClass(device_class);
  if (of_class == nullptr) of_class = catalog::DeviceOfClass(means_.host, device_class);
  if (of_class == nullptr) return absl::FailedPreconditionError("no card of the sweep's class is known");
  absl::StatusOr<Operations::Wanted> wanted = WantedOn(part, kind.On(part.request, of_class->id()), {of_class});
  if (!wanted.ok()) return wanted.status();
  wanted->device_class = device_class;
  wanted->here = false;  // this host claims it, too
  return wanted;
}

absl::StatusOr<MadePart> LiveParts::Start(const Operations::Wanted& wanted, const Part& part) {
  absl::StatusOr<Operations::Started> started = means_.operations.Start(wanted);
  if (!started.ok()) return started.status();
  const absl::StatusOr<JobTerms> terms = means_.kinds.at(wanted.kind)->Terms(started->request);
  if (!terms.ok()) return terms.status();
  if (started->fresh) means_.owner.BeginPart(*started, wanted);
  if (!wanted.here) means_.owner.LookForParts();
  if (!wanted.device_class.empty()) return MadePart{std::move(started->operation), part.cards};
  // One that was made before is for the cards that it was made for.
  return MadePart{std::move(started->operation), CardsIn(terms->device)};
}

absl::StatusOr<std::vector<MadePart>> LiveParts::Made() {
  absl::StatusOr<std::vector<v1::Operation>> operations = means_.operations.PartsOf(live_->name());
  if (!operations.ok()) return operations.status();
  std::vector<MadePart> parts;
  for (v1::Operation& operation : *operations) {
    MadePart& part = parts.emplace_back(MadePart{std::move(operation)});
    if (part.operation.done()) continue;
    const absl::StatusOr<store::Job> job = means_.queue.Get(part.operation.name());
    if (!job.ok()) return job.status();
    const absl::StatusOr<JobTerms> terms = means_.kinds.at(job->kind)->Terms(job->request);
    if (!terms.ok()) return terms.status();
    part.cards = CardsIn(terms->device);
    if (job->device_class.empty()) continue;
    const bool one = !job->home.empty() && part.cards.size() == 1;
    if (one) part.cards.front() = catalog::CardName(store::HostName(job->home), part.cards.front());
    if (!one) part.cards.clear();
  }
  return parts;
}

}  // namespace attune::jobs
