// What stores answer, in words that can be compared.
#ifndef ATTUNE_SERVER_STORE_COPY_TESTING_DAY_ANSWERS_H_
#define ATTUNE_SERVER_STORE_COPY_TESTING_DAY_ANSWERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/store/queue.h"

namespace attune::store::copy {

// The name of what was made, or why nothing was.
inline std::string NameOr(const absl::StatusOr<std::string>& name) {
  return name.ok() ? *name : absl::StatusCodeToString(name.status().code());
}
inline std::string CodeOf(const absl::Status& status) { return absl::StatusCodeToString(status.code()); }

template <typename Message>
std::string TextOr(absl::StatusOr<Message> message) {
  return message.ok() ? message->ShortDebugString() : CodeOf(message.status());
}

inline std::string Describe(const absl::StatusOr<Job>& job) {
  if (!job.ok()) return CodeOf(job.status());
  return absl::StrCat(job->name, " ", job->parent, " ", job->holder, " ", job->epoch, " ", job->cancelled, " ",
                      job->operation.ShortDebugString());
}

}  // namespace attune::store::copy

#endif  // ATTUNE_SERVER_STORE_COPY_TESTING_DAY_ANSWERS_H_
