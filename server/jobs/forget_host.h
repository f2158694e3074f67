// A host that will not come back: what is known of it goes, and so do the jobs that it alone could have worked on.
#ifndef ATTUNE_SERVER_JOBS_FORGET_HOST_H_
#define ATTUNE_SERVER_JOBS_FORGET_HOST_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/store.h"

namespace attune::jobs {

// As Hosts::Forget; before that its own unfinished jobs end as FAILED, or as CANCELLED where somebody has asked for
// that. Those of a class are left to other hosts. After an error the host is still there: repeat it.
absl::StatusOr<v1::Host> ForgetHost(store::Store& store, absl::string_view name);

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_FORGET_HOST_H_
