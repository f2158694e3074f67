// Submissions as their authors and admins see them: what may be submitted, who may read what, adoption.
#ifndef ATTUNE_SERVER_SUBMIT_SUBMISSIONS_H_
#define ATTUNE_SERVER_SUBMIT_SUBMISSIONS_H_

#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/served/v1/served.pb.h"
#include "attune/v1/submission.pb.h"
#include "server/catalog/host.h"
#include "server/store/store.h"

namespace attune::submit {

// Who asks.
struct Reader {
  std::string principal;
  bool admin = false;
};

// Thread-safe. Store and host outlive it; of the host it changes the families alone.
class Submissions {
 public:
  // `library`: kernels_src/, whose libraries sources may include.
  Submissions(store::Store& store, catalog::Host& host, std::string library)
      : store_(store), host_(host), library_(std::move(library)) {}

  // Makes what was adopted families again. One that is none any more, since what it includes has changed, is logged.
  absl::Status AddAdopted();
  // The same from a copy (catalog/copy/served_copy.h), while the store is away.
  void AddCopied(const served::v1::Copy& copy);
  // When the store is back: what it has as adopted, and no more what the copy had and it has not.
  absl::Status ReadAnew(const served::v1::Copy& copy);

  // Checks a request whose problems, policy and sizes are good, and fills in its device: the first that the kernel can
  // run on. InvalidArgument names the field or the line; NotFound of a base that the reader may not see.
  absl::Status Check(v1::SubmitRequest& request, const Reader& reader) const;

  // With files for its author and admins, and for all who may submit once it is adopted; NotFound for others.
  absl::StatusOr<v1::Submission> Get(absl::string_view name, const Reader& reader) const;
  absl::StatusOr<store::Page<v1::Submission>> List(const v1::ListSubmissionsRequest& request, int page_size,
                                                   const Reader& reader) const;
  absl::StatusOr<v1::Submission> Adopt(absl::string_view name, const Reader& reader);
  // PermissionDenied for who is neither its author nor an admin, and for authors of what is adopted. FailedPrecondition
  // while it is served.
  absl::StatusOr<v1::Submission> Withdraw(absl::string_view name, const Reader& reader);

 private:
  absl::Status CheckBase(v1::SubmitRequest& request, const Reader& reader, const std::string& content_hash) const;
  absl::Status CheckNotServed(const v1::Submission& submission) const;
  void AddFamily(const v1::Submission& submission);
  absl::Status AddAdoptedLocked();
  absl::Status RemoveUnlessAdopted(const v1::Submission& submission);

  store::Store& store_;
  catalog::Host& host_;
  const std::string library_;
  std::mutex moving_;  // held while what is adopted changes, or is read
};

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_SUBMISSIONS_H_
