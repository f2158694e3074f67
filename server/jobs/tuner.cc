#include "server/jobs/tuner.h"

#include <atomic>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "server/base/log.h"
#include "server/jobs/cards/host_cards.h"
#include "server/jobs/cards/job_lanes.h"
#include "server/jobs/claims.h"
#include "server/jobs/job_log.h"
#include "server/jobs/last_sweep.h"
#include "server/jobs/live_parts.h"
#include "server/jobs/operations.h"
#include "server/trials/device_slot.h"

namespace attune::jobs {
namespace {

using Fill = JobKind::Fill;

// Of a lease: how long its holder works on without a renewal. A fourth of it is left to end the running trial in before
// others may take the job.
constexpr double kFenced = 0.75;

Holder HolderOf(const TunerOptions& options) {
  return {options.holder, options.lease, options.shared ? kFenced * options.lease : absl::InfiniteDuration()};
}

class JobTuner : public Tuner, private Claims::Taker, private LiveParts::Owner {
 public:
  JobTuner(TunerOptions options, const std::vector<std::string>& device_ids)
      : store_(*options.store),
        host_(*options.host),
        kinds_(std::move(options.kinds)),
        cards_(*options.host, options.devices, options.idle_release, options.clock),
        holder_(options.holder),
        metrics_(options.metrics),
        operations_(&options.store->queue(), HolderOf(options), options.clock, options.metrics,
                    options.ended_elsewhere),
        shared_(options.shared && options.host->fleet != nullptr),
        takes_work_(options.takes_work),
        claims_({*this, options.store->queue(), operations_, lanes_, cards_, options.holder, options.lease, shared_}),
        lanes_(device_ids, [this] { claims_.LookSoon(); }) {
    if (metrics_ != nullptr) metrics_->loads().Set([this] { return Loads(); });
  }
  ~JobTuner() override {
    if (metrics_ != nullptr) metrics_->loads().Clear();
    Drain(absl::ZeroDuration());
    claims_.Stop();
  }

  absl::Status Resume() override {
    if (absl::Status read = operations_.ReadDeviceTimes(absl::Now()); !read.ok()) {
      LogWarning("quotas of device time begin anew", {{"error", read.message()}});
    }
    if (metrics_ != nullptr) {
      const absl::StatusOr<std::optional<absl::Time>> sweep = LastSweep(store_.queue());
      if (sweep.ok() && sweep->has_value()) metrics_->SweepSucceeded(**sweep);
    }
    const absl::StatusOr<std::vector<std::string>> names = store_.queue().Leasable(holder_);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      const absl::StatusOr<store::Job> job = store_.queue().Get(name);
      if (job.ok()) TakeUp(*job, /*claimed=*/false);
      if (!job.ok()) LogError("job not resumed", {{"job", name}, {"error", job.status().message()}});
    }
    claims_.Start();
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Operation> Tune(const v1::TuneRequest& request, const Asker& asker) override {
    return Start(store::JobKind::kTune, request.SerializeAsString(), asker);
  }
  absl::StatusOr<v1::Operation> Sweep(const v1::SweepRequest& request, const Asker& asker) override {
    return Start(store::JobKind::kSweep, request.SerializeAsString(), asker);
  }
  absl::StatusOr<v1::Operation> Evaluate(const v1::EvaluateVariantRequest& request, const Asker& asker) override {
    return Start(store::JobKind::kEvaluate, request.SerializeAsString(), asker);
  }
  absl::StatusOr<v1::Operation> Submit(const v1::SubmitRequest& request, const Asker& asker) override {
    return Start(store::JobKind::kSubmit, request.SerializeAsString(), asker);
  }
  absl::StatusOr<v1::Operation> Profile(const v1::ProfileRequest& request, const Asker& asker) override {
    return Start(store::JobKind::kProfile, request.SerializeAsString(), asker);
  }
  absl::StatusOr<v1::Operation> Sanitize(const v1::SanitizeRequest& request, const Asker& asker) override {
    return Start(store::JobKind::kSanitize, request.SerializeAsString(), asker);
  }

  absl::StatusOr<v1::Operation> GetOperation(absl::string_view name) override { return operations_.Get(name); }

  absl::StatusOr<v1::Operation> Cancel(absl::string_view name) override {
    const std::shared_ptr<LiveOperation> live = operations_.Find(name);
    if (live != nullptr) live->RequestStop(/*cancel=*/true);
    // Whoever holds it next is to know, should this process not come to end it.
    const absl::StatusOr<store::Job> kept = store_.queue().Cancel(name);
    if (kept.ok() && live != nullptr && live->Withdraw()) End(live, v1::Operation::STATE_CANCELLED);
    if (kept.ok() && live == nullptr) EndUnheld(*kept);
    CancelParts(name, kept.ok());
    lanes_.Refresh();
    if (!kept.ok()) return kept.status();
    return operations_.Get(name);
  }

  bool IsIdle(absl::string_view device_id) override { return lanes_.Load(std::string(device_id)) == 0; }

  absl::StatusOr<std::function<void()>> Watch(absl::string_view name, Watcher watcher) override {
    return operations_.Watch(name, std::move(watcher));
  }

  void Drain(absl::Duration grace) override {
    draining_ = true;
    lanes_.Stop();
    operations_.Stop();
    for (const std::shared_ptr<LiveOperation>& live : operations_.InFlight()) live->RequestStop(/*cancel=*/false);
    lanes_.AwaitQuiet(grace);
    // What was claimed and has not begun.
    for (const std::shared_ptr<LiveOperation>& live : operations_.InFlight()) {
      if (live->epoch() > 0 && live->Withdraw()) operations_.GiveBack(live);
    }
  }

 private:
  // Those with fewer jobs first.
  absl::StatusOr<std::vector<trials::DeviceSlot*>> SlotsFor(const std::string& names) {
    return cards_.SlotsFor(names, [this](const std::string& card) { return lanes_.Load(card); });
  }

  // The request as one for each of the slots' devices.
  static absl::StatusOr<std::vector<store::JoinTerms::Same>> OnEach(const std::vector<trials::DeviceSlot*>& slots,
                                                                    const JobKind& kind, const std::string& request) {
    std::vector<store::JoinTerms::Same> requests;
    for (const trials::DeviceSlot* slot : slots) {
      std::string on = kind.On(request, slot->device().id());
      absl::StatusOr<JobTerms> terms = kind.Terms(on);
      if (!terms.ok()) return terms.status();
      requests.push_back({std::move(on), std::move(terms->identity)});
    }
    return requests;
  }

  // The request as one for all the slots' devices.
  absl::StatusOr<std::vector<store::JoinTerms::Same>> OnAll(const std::vector<trials::DeviceSlot*>& slots,
                                                            const JobKind& kind, const std::string& request) const {
    std::string on = kind.On(request, catalog::ListOf(cards_.CardsOf(slots)));
    absl::StatusOr<JobTerms> terms = kind.Terms(on);
    if (!terms.ok()) return terms.status();
    return std::vector<store::JoinTerms::Same>{{std::move(on), std::move(terms->identity)}};
  }

  // Whose work any host may do. What wants several cards is this host's: another may have fewer.
  static bool IsShared(store::JobKind id, const JobTerms& terms) {
    return (id == store::JobKind::kTune || id == store::JobKind::kEvaluate || id == store::JobKind::kSweep) &&
           terms.sisters == 0;
  }

  // The request of a job as one for this host's cards, where it may be worked on by other hosts' too.
  std::string RequestHere(const store::Job& job) const {
    if (job.device_class.empty() || job.home == holder_) return job.request;
    const std::string cards = cards_.ListOfClass(job.device_class);
    const JobKind& kind = *kinds_.at(job.kind);
    return cards.empty() || !kind.Terms(job.request).ok() ? job.request : kind.On(job.request, cards);
  }

  bool IsDraining() const override { return draining_; }
  bool TakesWork() const override { return !draining_ && (takes_work_ == nullptr || takes_work_()); }

  // How urgent a job of a class is for a claim. What takes no card has a number of its own.
  static int64_t PriorityOf(const JobTerms& terms) {
    return terms.cards == Cards::kNone ? kTakesNoCard : static_cast<int64_t>(terms.priority);
  }

  // What is to be made of a request for `cards`, where its kind admits it.
  absl::StatusOr<Operations::Wanted> WantedFor(store::JobKind id, const std::string& request, const JobTerms& terms,
                                               const std::vector<const v1::Device*>& cards,
                                               const Asker& asker) const override {
    absl::StatusOr<JobTitle> title = kinds_.at(id)->Admit(request, cards);
    if (!title.ok()) return title.status();
    return Operations::Wanted{.kind = id,
                              .request = request,
                              .request_id = terms.request_id,
                              .identity = terms.identity,
                              .title = std::move(title->title),
                              .problem_text = std::move(title->problem_text),
                              .principal = asker.principal,
                              .most_of_principal = asker.most_unfinished,
                              .most_device_time = asker.most_device_time,
                              .trace = asker.trace,
                              .priority = PriorityOf(terms)};
  }

  // For whichever host has such a card free first, this one among them.
  absl::StatusOr<v1::Operation> StartForClass(store::JobKind id, const std::string& request, const v1::Device& of_class,
                                              const Asker& asker) {
    const JobKind& kind = *kinds_.at(id);
    // Other hosts may have another alias for it.
    const absl::StatusOr<JobTerms> terms = kind.Terms(kind.On(request, of_class.fingerprint()));
    if (!terms.ok()) return terms.status();
    absl::StatusOr<Operations::Wanted> wanted =
        WantedFor(id, kind.On(request, of_class.id()), *terms, {&of_class}, asker);
    if (!wanted.ok()) return wanted.status();
    wanted->device_class = of_class.fingerprint();
    const std::string cards = cards_.ListOfClass(wanted->device_class);
    const absl::Status available = cards_.CanHave(wanted->device_class);
    wanted->here = !cards.empty() && TakesWork() && available.ok();
    if (!available.ok()) wanted->detail = WhyNotHere(available);
    absl::StatusOr<Operations::Started> started = operations_.Start(*wanted);
    if (!started.ok()) return started.status();
    if (started->fresh) {
      const std::string here = kind.On(request, cards);
      EnqueueFound(started->live, kind, here, kind.Terms(here), WhoseJob::kWhoBegins);
    }
    return std::move(started->operation);
  }

  // For another host, whose card it names.
  absl::StatusOr<v1::Operation> StartElsewhere(store::JobKind id, const std::string& request,
                                               const catalog::FleetCard& card, const Asker& asker) {
    const std::string on = kinds_.at(id)->On(request, card.device.id());
    const absl::StatusOr<JobTerms> terms = kinds_.at(id)->Terms(on);
    if (!terms.ok()) return terms.status();
    absl::StatusOr<Operations::Wanted> wanted = WantedFor(id, on, *terms, {&card.device}, asker);
    if (!wanted.ok()) return wanted.status();
    wanted->home = store::HolderOf(card.host);
    wanted->here = false;
    absl::StatusOr<Operations::Started> started = operations_.Start(*wanted);
    if (!started.ok()) return started.status();
    return std::move(started->operation);
  }

  absl::StatusOr<v1::Operation> Start(store::JobKind id, const std::string& request, const Asker& asker) {
    if (draining_) return absl::UnavailableError("the server is shutting down and takes no new work");
    const JobKind& kind = *kinds_.at(id);
    const absl::StatusOr<JobTerms> terms = kind.Terms(request);
    if (!terms.ok()) return terms.status();
    if (shared_ && IsShared(id, *terms)) {
      const v1::Device* const of_class = catalog::FleetClassNamed(host_, terms->device);
      if (of_class != nullptr) return StartForClass(id, request, *of_class, asker);
      const bool here = !catalog::DevicesHere(host_, terms->device).empty();
      const std::optional<catalog::FleetCard> card = here ? std::nullopt : host_.fleet->FindCard(terms->device);
      if (card.has_value() && store::HolderOf(card->host) == holder_) {
        return Start(id, kind.On(request, card->device.id()), asker);
      }
      if (card.has_value()) return StartElsewhere(id, request, *card, asker);
    }
    return StartHere(id, request, *terms, asker);
  }

  absl::StatusOr<v1::Operation> StartHere(store::JobKind id, const std::string& request, const JobTerms& terms,
                                          const Asker& asker) {
    const JobKind& kind = *kinds_.at(id);
    absl::StatusOr<std::vector<trials::DeviceSlot*>> slots = SlotsFor(terms.device);
    if (!slots.ok()) return slots.status();
    const bool one = terms.cards == Cards::kOne;
    absl::StatusOr<std::vector<store::JoinTerms::Same>> requests =
        one ? OnEach(*slots, kind, request) : OnAll(*slots, kind, request);
    if (!requests.ok()) return requests.status();
    if (terms.own) {
      for (store::JoinTerms::Same& same : *requests) absl::StrAppend(&same.identity, " of ", asker.principal);
    }
    const store::JoinTerms::Same chosen = std::move(requests->front());
    requests->erase(requests->begin());
    if (one) slots->resize(1);
    absl::StatusOr<Operations::Wanted> wanted = WantedFor(id, chosen.request, terms, cards_.CardsOf(*slots), asker);
    if (!wanted.ok()) return wanted.status();
    wanted->identity = chosen.identity;
    wanted->elsewhere = *std::move(requests);
    if (shared_) wanted->home = holder_;  // other hosts have cards of these names, too
    absl::StatusOr<Operations::Started> started = operations_.Start(*wanted);
    if (!started.ok()) return started.status();
    if (started->fresh) Enqueue(started->live, kind, chosen.request, terms, *slots);
    return std::move(started->operation);
  }

  // A job that was there before this process, or is another holder's no longer. `claimed`: it is leased already.
  void TakeUp(const store::Job& job, bool claimed) override {
    const JobKind& kind = *kinds_.at(job.kind);
    const std::string request = RequestHere(job);
    const absl::StatusOr<JobTerms> terms = kind.Terms(request);
    const bool here = terms.ok() && SlotsFor(terms->device).ok();
    const std::shared_ptr<LiveOperation> live = operations_.Adopt(job, here ? terms->identity : job.name, claimed);
    if (live == nullptr) return;
    if (job.lost_by.size() < store::kMostLosses) {
      return EnqueueFound(live, kind, request, terms, WhoseIs(job.device_class, job.home));
    }
    live->Withdraw();
    End(live, v1::Operation::STATE_FAILED,
        absl::AbortedError(absl::StrCat("its host was lost ", job.lost_by.size(), " times (",
                                        absl::StrJoin(job.lost_by, ", "), "): what it runs may be what ends them")));
  }

  // A job that nobody works on and nobody but the queue knows is cancelled: it ends here.
  void EndUnheld(const store::Job& job) {
    if (!shared_ || job.operation.done() || !job.holder.empty()) return;
    const std::shared_ptr<LiveOperation> live = operations_.Adopt(job, job.name);
    if (live != nullptr && live->Withdraw()) End(live, v1::Operation::STATE_CANCELLED);
  }

  // Whose a job in the lanes is.
  enum class WhoseJob {
    kThisHosts,
    kHomes,      // names a card of a host, and is of a class: others may do it while that host is away
    kAnyHosts,   // leased here; goes back to the queue where another process turns out to hold the card
    kWhoBegins,  // and nobody's before: it is left to others while this host drains, or cannot begin it at once
  };
  static WhoseJob WhoseIs(absl::string_view device_class, absl::string_view home) {
    if (device_class.empty()) return WhoseJob::kThisHosts;
    return home.empty() ? WhoseJob::kAnyHosts : WhoseJob::kHomes;
  }

  // A job as the queue had it: it fails when its request cannot be read, or none of its cards is here.
  void EnqueueFound(const std::shared_ptr<LiveOperation>& live, const JobKind& kind, const std::string& request,
                    const absl::StatusOr<JobTerms>& terms, WhoseJob whose = WhoseJob::kThisHosts) {
    const absl::StatusOr<std::vector<trials::DeviceSlot*>> slots =
        terms.ok() ? SlotsFor(terms->device) : absl::StatusOr<std::vector<trials::DeviceSlot*>>(terms.status());
    if (slots.ok()) return Enqueue(live, kind, request, *terms, *slots, whose);
    live->Withdraw();
    End(live, v1::Operation::STATE_FAILED, slots.status());
  }

  // Others are left to holders that have the device.
  bool IsForThisHost(const store::Job& job) override {
    if (!job.device_class.empty() && cards_.ListOfClass(job.device_class).empty()) return false;
    const absl::StatusOr<JobTerms> terms = kinds_.at(job.kind)->Terms(RequestHere(job));
    return terms.ok() && SlotsFor(terms->device).ok();
  }

  // `slots`: of the cards that it names, those with fewer jobs first.
  void Enqueue(const std::shared_ptr<LiveOperation>& live, const JobKind& kind, const std::string& request,
               const JobTerms& terms, const std::vector<trials::DeviceSlot*>& slots,
               WhoseJob whose = WhoseJob::kThisHosts) {
    const bool takes_card = terms.cards != Cards::kNone;
    const auto run = [this, live, &kind, request, priority = terms.priority, sisters = terms.sisters, takes_card, whose,
                      cards = cards_.CardsOf(slots)](const std::string& device, const trials::Waiter& waiter) {
      if (whose == WhoseJob::kWhoBegins && (!TakesWork() || !cards_.At(device).Available().ok())) {
        if (live->Withdraw()) operations_.Drop(live);
        return;
      }
      const std::string card = CardNameOf(*live, device, whose);
      RunJob(live, takes_card ? device : "", card, whose, [&] {
        const JobLanes::Help help(lanes_, sisters > 0 ? cards_.SistersOf(device) : std::vector<std::string>(), sisters);
        std::vector<trials::DeviceSlot*> helping;
        for (const std::string& id : help.devices()) helping.push_back(&cards_.At(id));
        const trials::Job job{live->name(), priority,      live->stop_token(), waiter,
                              *live,        live->epoch(), live->abort_token()};
        LiveParts parts({*this, store_.queue(), operations_, host_, kinds_, holder_, shared_}, live);
        absl::StatusOr<Fill> fill = kind.Run(request, {cards_.At(device), cards, job, parts, live->Snapshot(),
                                                       [&](absl::FunctionRef<void(v1::Operation&)> change) {
                                                         live->Update(change);
                                                         return operations_.Save(*live);
                                                       },
                                                       std::move(helping), card});
        if (takes_card) CountWait(*live, device, priority);
        return fill;
      });
    };
    JobLanes::Job job{live->waiter(), run, [live] { return live->taken(); }, [live] { return live->done(); },
                      whose == WhoseJob::kWhoBegins};
    if (!takes_card) return lanes_.AddWithout(slots.front()->device().id(), std::move(job));
    std::vector<std::string> devices;
    for (const trials::DeviceSlot* slot : slots) devices.push_back(slot->device().id());
    if (terms.cards == Cards::kOne) devices.resize(1);
    lanes_.Add(devices, terms.priority, std::move(job));
  }

  // What the report of a job calls the card that works on it.
  std::string CardNameOf(const LiveOperation& live, const std::string& device, WhoseJob whose) const {
    const bool own = live.parent().empty() ? !shared_ : whose == WhoseJob::kThisHosts;
    return own ? device : catalog::CardName(store::HostName(holder_), device);
  }

  // As metrics call it.
  static const char* WordOf(const std::optional<trials::Priority>& priority) {
    if (!priority.has_value()) return "none";
    switch (*priority) {
      case trials::Priority::kInteractive:
        return "interactive";
      case trials::Priority::kBackground:
        return "background";
      case trials::Priority::kIdle:
        break;
    }
    return "idle";
  }

  std::vector<metrics::JobLoad> Loads() {
    std::vector<metrics::JobLoad> loads;
    for (const JobLanes::LaneLoad& load : lanes_.Loads()) {
      loads.push_back({cards_.ClassAliasOf(load.device), WordOf(load.priority), load.waiting, load.running});
    }
    return loads;
  }

  void CountWait(const LiveOperation& live, const std::string& device, trials::Priority priority) {
    const std::optional<absl::Duration> waited = live.waited();
    if (metrics_ == nullptr || !waited.has_value()) return;
    metrics_->Waited(cards_.ClassAliasOf(device), WordOf(priority), *waited);
  }

  absl::StatusOr<std::vector<const v1::Device*>> CardsHere(const std::string& names) override {
    const absl::StatusOr<std::vector<trials::DeviceSlot*>> slots = SlotsFor(names);
    if (!slots.ok()) return slots.status();
    return cards_.CardsOf(*slots);
  }

  void BeginPart(const Operations::Started& started, const Operations::Wanted& wanted) override {
    const JobKind& kind = *kinds_.at(wanted.kind);
    EnqueueFound(started.live, kind, started.request, kind.Terms(started.request),
                 WhoseIs(wanted.device_class, wanted.home));
  }

  void LookForParts() override { claims_.LookSoon(); }

  // A job that takes more memory than there is fails alone.
  static absl::StatusOr<Fill> Guarded(const std::function<absl::StatusOr<Fill>()>& run) {
    try {
      return run();
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("the server has too little memory left for this job");
    }
  }

  // A job's life on its thread. `card`: what it calls the device. `run` gives what fills in the response.
  void RunJob(const std::shared_ptr<LiveOperation>& live, const std::string& device, const std::string& card,
              WhoseJob whose, const std::function<absl::StatusOr<Fill>()>& run) {
    if (!live->Begin(device.empty() ? "" : card) || !operations_.Lease(live)) return;
    // It has its card: the next part may begin on another.
    if (whose == WhoseJob::kAnyHosts && !live->parent().empty()) claims_.LookSoon();
    LogJob("job started", live->Snapshot(), live->trace());
    const absl::Status saved = live->cancelled() ? absl::CancelledError("cancelled") : operations_.Save(*live);
    absl::StatusOr<Fill> fill = saved.ok() ? Guarded(run) : saved;
    if (fill.ok()) return operations_.Finish(live, v1::Operation::STATE_SUCCEEDED, absl::OkStatus(), *fill);
    if (live->lost() || store::IsStale(fill.status())) return operations_.Drop(live);
    if (!live->stop_token().stop_requested()) {
      const bool of_class = whose == WhoseJob::kAnyHosts || whose == WhoseJob::kWhoBegins;
      const bool may_go = of_class && !device.empty() && absl::IsFailedPrecondition(fill.status());
      if (may_go && !cards_.At(device).Available().ok()) {
        return operations_.LeaveToOthers(live, WhyNotHere(fill.status()));
      }
      End(live, v1::Operation::STATE_FAILED, fill.status());
      return CancelParts(live->name(), /*stored=*/true);
    }
    if (live->cancelled()) {
      End(live, v1::Operation::STATE_CANCELLED);
      return CancelParts(live->name(), /*stored=*/true);  // one may have been made after the cancel
    }
    // The daemon goes down: the job stays unfinished in the store and is resumed by the next one.
    LogJob("job interrupted, goes on at the next start", live->Snapshot(), live->trace());
    operations_.GiveBack(live);
  }

  void EndCancelled(const std::shared_ptr<LiveOperation>& live) override { End(live, v1::Operation::STATE_CANCELLED); }

  std::string WhyNotHere(const absl::Status& status) const {
    return absl::StrCat("waits for a card that is free; on host ", holder_, ", ", status.message());
  }

  // Those in flight here. `stored`: the store knows that they are cancelled. Otherwise to end one now might mean to
  // wait for the store; it ends when its turn comes.
  void CancelParts(absl::string_view parent, bool stored) {
    for (const std::shared_ptr<LiveOperation>& part : operations_.PartsInFlight(parent)) {
      part->RequestStop(/*cancel=*/true);
      if (stored && part->Withdraw()) End(part, v1::Operation::STATE_CANCELLED);
    }
    if (stored && shared_) EndUnheldParts(std::string(parent));
  }

  // Those that wait for any host. What others hold ends there.
  void EndUnheldParts(const std::string& parent) {
    const absl::StatusOr<std::vector<v1::Operation>> parts = operations_.PartsOf(parent, /*active_only=*/true);
    if (!parts.ok()) return;
    for (const v1::Operation& part : *parts) {
      if (operations_.Find(part.name()) != nullptr) continue;
      const absl::StatusOr<store::Job> job = store_.queue().Get(part.name());
      if (job.ok() && job->cancelled) EndUnheld(*job);
    }
  }

  // Without a response.
  void End(const std::shared_ptr<LiveOperation>& live, v1::Operation::State state,
           const absl::Status& error = absl::OkStatus()) {
    operations_.Finish(live, state, error, [](v1::Operation&) { return absl::OkStatus(); });
  }

  store::Store& store_;
  const catalog::Host& host_;
  const std::map<store::JobKind, const JobKind*> kinds_;
  const HostCards cards_;
  const std::string holder_;
  metrics::Jobs* const metrics_;
  Operations operations_;
  const bool shared_;  // with other hosts
  const std::function<bool()> takes_work_;
  std::atomic<bool> draining_ = false;
  Claims claims_;   // what runs in the lanes tells it; takes for them, until Stop
  JobLanes lanes_;  // last: its jobs use all of the above
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tuner>> Tuner::Create(TunerOptions options) {
  if (options.store == nullptr) return absl::InvalidArgumentError("TunerOptions.store is null; it is needed");
  if (options.host == nullptr) return absl::InvalidArgumentError("TunerOptions.host is null; it is needed");
  for (const store::JobKind kind :
       {store::JobKind::kTune, store::JobKind::kSweep, store::JobKind::kEvaluate, store::JobKind::kSweepProblem,
        store::JobKind::kSubmit, store::JobKind::kProfile, store::JobKind::kSanitize}) {
    if (options.kinds[kind] == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("TunerOptions.kinds lacks the kind of job ", static_cast<int>(kind)));
    }
  }
  std::vector<std::string> device_ids;
  for (const auto& [id, worker] : options.devices) {
    if (worker == nullptr || worker->device().id() != id) {
      return absl::InvalidArgumentError(absl::StrCat("TunerOptions.devices['", id, "'] is not that device's worker"));
    }
    device_ids.push_back(id);
  }
  return std::make_unique<JobTuner>(std::move(options), device_ids);
}

}  // namespace attune::jobs
