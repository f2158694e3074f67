#include "server/store/copy/testing/listings.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/sha256.h"
#include "server/store/copy/testing/day.h"
#include "server/store/testing/store_contract.h"

namespace attune::store::copy {
namespace {

constexpr v1::Policy kPolicies[] = {v1::POLICY_HOT, v1::POLICY_COLD};

template <typename Message>
std::string LineOf(const Message& message) {
  return message.ShortDebugString();
}
std::string LineOf(v1::Blob blob) {
  blob.clear_create_time();
  blob.clear_use_time();
  return blob.ShortDebugString();
}
std::string LineOf(v1::Submission submission) {
  submission.clear_state_time();
  return submission.ShortDebugString();
}

template <typename Message>
std::string LineOr(const absl::StatusOr<Message>& message) {
  return message.ok() ? LineOf(*message) : absl::StatusCodeToString(message.status().code());
}

class Lister {
 public:
  Lister(Store& store, bool leases) : store_(store), leases_(leases) {}

  std::vector<Listing> All() {
    ListTrials();
    ListIncumbents();
    ListMeasured();
    ListSubmissions();
    ListJobs();
    ListBlobs();
    ListArtifacts();
    return std::move(all_);
  }

 private:
  template <typename T>
  using ListPage = std::function<absl::StatusOr<Page<T>>(int page_size, const std::string& token)>;

  // In pages of a size of their own.
  template <typename T>
  std::vector<T> Add(std::string name, int page_size, const ListPage<T>& list) {
    std::vector<T> items;
    Listing& listing = all_.emplace_back(Listing{std::move(name), {}});
    std::string token;
    do {
      const absl::StatusOr<Page<T>> page = list(page_size, token);
      EXPECT_TRUE(page.ok()) << listing.name << ": " << page.status();
      if (!page.ok()) break;
      for (const T& item : page->items) {
        listing.lines.push_back(LineOf(item));
        items.push_back(item);
      }
      token = page->next_page_token;
    } while (!token.empty());
    return items;
  }

  void ListTrials() {
    using Order = v1::ListTrialsRequest;
    const auto list = [this](const v1::TrialFilter& filter, Order::Order order) {
      return [this, filter, order](int page_size, const std::string& token) {
        return store_.ListTrials(filter, order, page_size, token);
      };
    };
    const std::vector<v1::Trial> trials = Add<v1::Trial>("newest trials", 97, list({}, Order::ORDER_NEWEST));
    Add<v1::Trial>("fastest trials", 1000, list({}, Order::ORDER_FASTEST));
    std::set<std::string> jobs;
    Listing whole = {"trials by themselves", {}};
    for (const v1::Trial& trial : trials) {
      jobs.insert(trial.job());
      whole.lines.push_back(LineOr(store_.GetTrial(trial.name())));
    }
    all_.push_back(std::move(whole));
    for (const std::string& job : jobs) {
      v1::TrialFilter filter;
      filter.set_job(job);
      Add<v1::Trial>(absl::StrCat("trials of job ", job), 11, list(filter, Order::ORDER_NEWEST));
    }
    v1::TrialFilter bad;
    bad.add_verdicts(v1::VERDICT_TIMEOUT);
    bad.add_verdicts(v1::VERDICT_SLOW);
    Add<v1::Trial>("bad trials", 50, list(bad, Order::ORDER_NEWEST));
    v1::TrialFilter card;
    card.set_device_uuid("GPU-1");
    card.set_policy(v1::POLICY_COLD);
    card.set_family("attention_simt");
    card.set_device_class(kClass);
    Add<v1::Trial>("trials of a card", 50, list(card, Order::ORDER_FASTEST));
    for (int i = 0; i < kProblems; ++i) ListTrialsOf(ProblemOfDay(i), list);
  }

  template <typename List>
  void ListTrialsOf(const std::string& problem, const List& list) {
    v1::TrialFilter filter;
    filter.set_problem(problem);
    Add<v1::Trial>(absl::StrCat("trials of ", problem), 13, list(filter, v1::ListTrialsRequest::ORDER_FASTEST));
    Listing known = {absl::StrCat("what is known of ", problem), {}};
    for (const v1::Policy policy : kPolicies) {
      for (const Instance& card : {Instance{"cuda:0", "GPU-0"}, Instance{"cuda:1", "GPU-1"}, Instance{"cuda:2", ""}}) {
        v1::Dependencies dependencies = SampleTrial().dependencies();
        if (card.uuid.empty()) dependencies.set_device_fingerprint("h100");
        const auto trials = store_.KnownTrials(problem, card, policy, dependencies);
        const auto prior = store_.PriorTrials(problem, card, policy, dependencies, 5);
        EXPECT_TRUE(trials.ok() && prior.ok()) << trials.status() << prior.status();
        for (const v1::Trial& trial : trials.value_or(std::vector<v1::Trial>())) known.lines.push_back(LineOf(trial));
        for (const v1::Trial& trial : prior.value_or(std::vector<v1::Trial>())) known.lines.push_back(LineOf(trial));
      }
    }
    all_.push_back(std::move(known));
  }

  void ListIncumbents() {
    const auto list = [this](const IncumbentFilter& filter) {
      return [this, filter](int page_size, const std::string& token) {
        return store_.ListIncumbents(filter, page_size, token);
      };
    };
    Add<v1::Incumbent>("what is served", 7, list({}));
    Add<v1::Incumbent>("all incumbents", 19, list({.history = true}));
    Add<v1::Incumbent>("incumbents of a class", 5, list({.device_class = "h100", .history = true}));
    Add<v1::Incumbent>("incumbents of a policy", 5, list({.policy = v1::POLICY_COLD}));
    Listing each = {"what is served for each", {}};
    for (int i = 0; i < kProblems; ++i) {
      for (const v1::Policy policy : kPolicies) {
        each.lines.push_back(LineOr(store_.GetIncumbent(ProblemOfDay(i), kClass, policy)));
      }
    }
    all_.push_back(std::move(each));
  }

  void ListMeasured() {
    const auto retimings = [this](const RetimingFilter& filter) {
      return [this, filter](int page_size, const std::string& token) {
        return store_.ListRetimings(filter, page_size, token);
      };
    };
    Add<v1::Retiming>("retimings", 17, retimings({}));
    Add<v1::Retiming>("retimings of a problem", 3, retimings({.problem_text = ProblemOfDay(3)}));
    Add<v1::Retiming>("retimings of a card", 9, retimings({.device_uuid = "GPU-0", .policy = v1::POLICY_HOT}));
    Add<v1::Baseline>("baselines", 6, [this](int page_size, const std::string& token) {
      return store_.ListBaselines("", "", page_size, token);
    });
  }

  void ListSubmissions() {
    const auto list = [this](const SubmissionFilter& filter) {
      return [this, filter](int page_size, const std::string& token) {
        return store_.ListSubmissions(filter, page_size, token);
      };
    };
    const std::vector<v1::Submission> all = Add<v1::Submission>("submissions", 7, list({}));
    Add<v1::Submission>("submissions of a loop", 7, list({.principal = "token:ada", .loop = "tiles"}));
    Add<v1::Submission>("adopted submissions", 7, list({.state = v1::Submission::STATE_ADOPTED}));
    Listing whole = {"submissions by themselves", {}};
    for (const v1::Submission& one : all) whole.lines.push_back(LineOr(store_.GetSubmission(one.name())));
    all_.push_back(std::move(whole));
  }

  void ListJobs() {
    const auto list = [this](const JobFilter& filter) {
      return [this, filter](int page_size, const std::string& token) {
        return store_.queue().List(filter, page_size, token);
      };
    };
    std::vector<v1::Operation> jobs = Add<v1::Operation>("jobs", 13, list({}));
    Add<v1::Operation>("unfinished jobs", 4, list({.active_only = true}));
    Add<v1::Operation>("tunings", 13, list({.kind = JobKind::kTune}));
    for (int i = 0; i < kProblems; ++i) {
      Add<v1::Operation>(absl::StrCat("jobs of problem ", i), 2, list({.problem_text = ProblemOfDay(i)}));
    }
    for (int i = 0; i < 5; ++i) {
      const std::string problem = absl::StrCat("b9.h1.q", i, ".d64.f16");
      Add<v1::Operation>(absl::StrCat("jobs of ", problem), 2, list({.problem_text = problem}));
    }
    const std::vector<v1::Operation> wholes = jobs;
    for (const v1::Operation& whole : wholes) {
      for (v1::Operation& part :
           Add<v1::Operation>(absl::StrCat("parts of ", whole.name()), 3, list({.parent = whole.name()}))) {
        jobs.push_back(std::move(part));
      }
    }
    Listing each = {"jobs by themselves", {}};
    for (const v1::Operation& operation : jobs) each.lines.push_back(DescribeJob(operation.name()));
    all_.push_back(std::move(each));
    all_.push_back({"what can be leased", store_.queue().Leasable(kHolder).value_or(std::vector<std::string>())});
  }

  std::string DescribeJob(const std::string& name) {
    const absl::StatusOr<Job> job = store_.queue().Get(name);
    if (!job.ok()) return job.status().ToString();
    return absl::StrCat(job->name, " ", static_cast<int>(job->kind), " ", Sha256(job->request), " ", job->request_id,
                        " ", Sha256(job->identity), " ", job->parent, " ", job->epoch, " ", job->cancelled, " ",
                        leases_ ? job->holder : "", " ", job->operation.ShortDebugString());
  }

  void ListBlobs() {
    const auto list = [this](const BlobFilter& filter) {
      return [this, filter](int page_size, const std::string& token) {
        return store_.blobs().List(filter, page_size, token);
      };
    };
    const std::vector<v1::Blob> all = Add<v1::Blob>("blobs", 3, list({}));
    Add<v1::Blob>("blobs of a reader", 3, list({.reader = "token:ada"}));
    Listing read = {"bytes of blobs", {}};
    for (const v1::Blob& blob : all) read.lines.push_back(Sha256(store_.blobs().Read(blob).value_or("gone")));
    all_.push_back(std::move(read));
    Listing totals = {"totals of blobs", {}};
    const auto found = store_.blobs().Totals({});
    EXPECT_TRUE(found.ok()) << found.status();
    if (found.ok()) {
      for (const auto& total : *found) totals.lines.push_back(total.ShortDebugString());
    }
    all_.push_back(std::move(totals));
  }

  void ListArtifacts() {
    Listing artifacts = {"artifacts", {}};
    for (const char* toolchain : {"nvrtc 13.0", "nvrtc 12.9"}) {
      for (int i = 0; i < 60; ++i) {
        const absl::StatusOr<CompiledArtifact> found = store_.FindArtifact(absl::StrCat("key ", i), toolchain);
        if (!found.ok()) {
          artifacts.lines.push_back(absl::StatusCodeToString(found.status().code()));
          continue;
        }
        const std::string code = found->sha256.empty() ? "" : store_.ReadArtifact(found->sha256).value_or("gone");
        artifacts.lines.push_back(absl::StrCat(found->verdict, " ", found->log, " ", found->entries.size(), " ",
                                               found->compile_ms, " ", code));
      }
    }
    all_.push_back(std::move(artifacts));
  }

  Store& store_;
  const bool leases_;
  std::vector<Listing> all_;
};

}  // namespace

std::vector<Listing> Listings(Store& store, bool leases) { return Lister(store, leases).All(); }

void ExpectSameListings(const std::vector<Listing>& one, const std::vector<Listing>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i].name, other[i].name);
    EXPECT_EQ(one[i].lines.size(), other[i].lines.size()) << one[i].name;
    const size_t both = std::min(one[i].lines.size(), other[i].lines.size());
    for (size_t line = 0; line < both; ++line) {
      EXPECT_EQ(one[i].lines[line], other[i].lines[line]) << one[i].name << ", line " << line;
      if (one[i].lines[line] != other[i].lines[line]) break;
    }
  }
}

}  // namespace attune::store::copy
