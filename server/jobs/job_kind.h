// A kind of job: what its requests ask for, and how they are worked on. The tuner knows jobs only as this, so that a
// kind may stand above this folder (server/sweep does).
#ifndef ATTUNE_SERVER_JOBS_JOB_KIND_H_
#define ATTUNE_SERVER_JOBS_JOB_KIND_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "server/jobs/parts.h"
#include "server/store/store.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"

namespace attune::jobs {

// Which of the devices that its request names work on a job.
enum class Cards {
  kOne,   // that with the fewest jobs when it comes, from then on
  kFree,  // the first that is free
  kNone,  // none: its parts are worked on, each as its own request says
};

// What a request says of its job, whatever state the host is in.
struct JobTerms {
  std::string device;  // as the request names it, or a list of them
  Cards cards = Cards::kOne;
  std::string request_id;  // may be empty
  std::string identity;    // equal for requests that ask for the same
  bool own = false;        // what comes of it is its principal's: no other joins it
  trials::Priority priority = trials::Priority::kInteractive;
  size_t sisters = 0;  // cards of the same class beside the one that works on it
};

// How a job is called.
struct JobTitle {
  std::string title;
  std::string problem_text = {};  // empty for a sweep
};

// A job that runs.
struct JobRun {
  trials::DeviceSlot& slot;              // of the card that works on it; without one, the first of `cards`
  std::vector<const v1::Device*> cards;  // that the request names, in the host's order
  const trials::Job& job;
  Parts& parts;
  v1::Operation before;  // as an earlier process left it
  // Changes what the operation has found so far, and stores that, so that the next process goes on behind it.
  std::function<absl::Status(absl::FunctionRef<void(v1::Operation&)>)> save;
  std::vector<trials::DeviceSlot*> sisters =
      {};  // of the other cards that work on it: as many as JobTerms says, or are
  // What the slot's card is called in what comes of it: its id, and of a part that any host may do its host's name, too
  // (catalog::CardName).
  std::string card = {};
};

// Thread-safe. Requests are serialised messages, valid and normalised (the service has seen to it).
class JobKind {
 public:
  // Sets the response of an operation. Returns why the operation has failed though it has one, or OK.
  using Fill = std::function<absl::Status(v1::Operation&)>;

  virtual ~JobKind() = default;
  // DataLoss when the request cannot be read.
  virtual absl::StatusOr<JobTerms> Terms(const std::string& request) const = 0;
  // The request as one for `device_id`, or a list, whatever name it had for the device.
  virtual std::string On(const std::string& request, const std::string& device_id) const = 0;
  // FailedPrecondition, or another reason, when it cannot be worked on on `cards`, which are never none.
  virtual absl::StatusOr<JobTitle> Admit(const std::string& request,
                                         const std::vector<const v1::Device*>& cards) const = 0;
  // Cancelled when the job was asked to stop.
  virtual absl::StatusOr<Fill> Run(const std::string& request, const JobRun& run) const = 0;
};

// A kind whose requests are one message, which is read in one place.
template <typename Request>
class JobKindOf : public JobKind {
 public:
  explicit JobKindOf(store::JobKind kind) : kind_(kind) {}

  absl::StatusOr<JobTerms> Terms(const std::string& request) const final {
    Request message;
    if (!message.ParseFromString(request)) return absl::DataLossError("the stored request cannot be read");
    JobTerms terms = TermsOf(message);
    terms.request_id = message.request_id();
    message.clear_request_id();
    terms.identity = absl::StrCat(static_cast<int>(kind_), Canonical(std::move(message)).SerializeAsString());
    return terms;
  }
  std::string On(const std::string& request, const std::string& device_id) const final {
    Request message = Read(request);
    SetDevice(device_id, message);
    return message.SerializeAsString();
  }
  absl::StatusOr<JobTitle> Admit(const std::string& request, const std::vector<const v1::Device*>& cards) const final {
    return AdmitRequest(Read(request), cards);
  }
  absl::StatusOr<Fill> Run(const std::string& request, const JobRun& run) const final {
    return RunRequest(Read(request), run);
  }

 private:
  // The device and the priority.
  virtual JobTerms TermsOf(const Request& request) const = 0;
  virtual void SetDevice(const std::string& device_id, Request& request) const = 0;
  // One of all the requests that ask for the same.
  virtual Request Canonical(Request request) const { return request; }
  virtual absl::StatusOr<JobTitle> AdmitRequest(const Request& request,
                                                const std::vector<const v1::Device*>& cards) const = 0;
  virtual absl::StatusOr<Fill> RunRequest(const Request& request, const JobRun& run) const = 0;

  // One whose terms were read.
  static Request Read(const std::string& request) {
    Request message;
    message.ParseFromString(request);
    return message;
  }

  const store::JobKind kind_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_JOB_KIND_H_
