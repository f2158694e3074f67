#include "server/jobs/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "server/catalog/testing/fake_host.h"
#include "server/jobs/job_kind.h"
#include "server/jobs/tuner.h"
#include "server/store/testing/fake_store.h"
#include "server/supervisor/testing/fake_workers.h"

namespace attune::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A request of it is the list of its cards.
class ListKind : public JobKind {
 public:
  using Work = std::function<absl::Status(const JobRun&)>;
  ListKind(Cards cards, Work work) : cards_(cards), work_(std::move(work)) {}

  absl::StatusOr<JobTerms> Terms(const std::string& request) const override {
    JobTerms terms;
    terms.device = request.empty() ? "cuda:0" : request;
    terms.cards = cards_;
    terms.identity = request;
    return terms;
  }
  std::string On(const std::string&, const std::string& device_id) const override { return device_id; }
  absl::StatusOr<JobTitle> Admit(const std::string& request, const std::vector<const v1::Device*>&) const override {
    return JobTitle{"on " + request};
  }
  absl::StatusOr<Fill> Run(const std::string&, const JobRun& run) const override {
    if (absl::Status status = work_(run); !status.ok()) return status;
    return [](v1::Operation&) { return absl::OkStatus(); };
  }

 private:
  const Cards cards_;
  const Work work_;
};

class PartsTest : public ::testing::Test {
 protected:
  // The end of a job that does `work`, and whose parts do nothing.
  v1::Operation Run(ListKind::Work work) {
    const ListKind parent(Cards::kNone, std::move(work));
    const ListKind part(Cards::kFree, [](const JobRun&) { return absl::OkStatus(); });
    TunerOptions options;
    options.store = &store_;
    options.host = &host_;
    options.devices = {{"cuda:0", &device_}};
    options.kinds = {{store::JobKind::kTune, &part},     {store::JobKind::kSweep, &parent},
                     {store::JobKind::kEvaluate, &part}, {store::JobKind::kSweepProblem, &part},
                     {store::JobKind::kSubmit, &part},   {store::JobKind::kProfile, &part},
                     {store::JobKind::kSanitize, &part}};
    const std::unique_ptr<Tuner> tuner = Tuner::Create(options).value();
    std::promise<v1::Operation> ended;
    const std::string name = tuner->Sweep({})->name();
    const auto stop = tuner->Watch(name, [&ended](const v1::Operation& operation) {
      if (operation.done()) ended.set_value(operation);
    });
    std::future<v1::Operation> end = ended.get_future();
    const bool in_time = end.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
    EXPECT_TRUE(in_time) << "it has not ended";
    (*stop)();
    return in_time ? end.get() : v1::Operation();
  }

  static Part PartOn(const std::string& card) { return {"0", store::JobKind::kSweepProblem, "", {card}}; }

  static void AwaitEnd(const JobRun& run, const std::string& name) {
    while (!run.job.stop.stop_requested() && !run.parts.Get({name})->front().done()) run.parts.AwaitChange();
  }

  store::FakeStore store_;
  catalog::Host host_ = catalog::FakeHost();
  supervisor::FakeDeviceWorker device_{catalog::FakeDevice()};
};

TEST_F(PartsTest, OneForACardThatIsNotHereFailsItsJobAtOnce) {
  const v1::Operation ended = Run([](const JobRun& run) { return run.parts.Make(PartOn("cuda:9")).status(); });
  EXPECT_EQ(ended.state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(ended.error().message(), HasSubstr("device_id is 'cuda:9'; this host has cuda:0"));
}

TEST_F(PartsTest, OneThatIsThereStaysAsItIs) {
  const v1::Operation ended = Run([](const JobRun& run) {
    const absl::StatusOr<MadePart> made = run.parts.Make(PartOn("cuda:0"));
    if (!made.ok()) return made.status();
    EXPECT_EQ(made->operation.title(), "on cuda:0");
    EXPECT_THAT(made->cards, ElementsAre("cuda:0"));
    AwaitEnd(run, made->operation.name());
    const absl::StatusOr<MadePart> again = run.parts.Make({"0", store::JobKind::kSweepProblem, "", {"all"}});
    if (!again.ok()) return again.status();
    EXPECT_EQ(again->operation.name(), made->operation.name());
    EXPECT_TRUE(again->operation.done());
    EXPECT_THAT(again->cards, ElementsAre("cuda:0")) << "as it was made";
    return absl::OkStatus();
  });
  EXPECT_EQ(ended.state(), v1::Operation::STATE_SUCCEEDED) << ended.error().message();
}

// The lease's next renewal, which would tell, is 15 s away.
TEST_F(PartsTest, AJobHearsOfItsCancelWhenAPartWasCancelledWithIt) {
  const v1::Operation ended = Run([this](const JobRun& run) {
    if (absl::Status asked = store_.queue().Cancel(run.job.name).status(); !asked.ok()) return asked;
    const absl::StatusOr<MadePart> made = run.parts.Make(PartOn("cuda:0"));
    if (!made.ok()) return made.status();
    AwaitEnd(run, made->operation.name());
    return run.job.stop.stop_requested() ? absl::CancelledError("stopped") : absl::OkStatus();
  });
  EXPECT_EQ(ended.state(), v1::Operation::STATE_CANCELLED);
}

}  // namespace
}  // namespace attune::jobs
