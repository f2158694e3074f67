// An error as HTTP tells it: a status and {"error":{"code","message"}}.
#ifndef ATTUNE_CLIENT_DASHBOARD_ERRORS_H_
#define ATTUNE_CLIENT_DASHBOARD_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/dashboard/http_message.h"
#include "client/dashboard/query_fields.h"

namespace attune::dashboard {

inline constexpr char kJson[] = "application/json";

// NOT_FOUND is 404 and so on, as google.rpc.Code has it.
int HttpStatusOf(absl::StatusCode code);

// `code`: "NOT_FOUND", or a word of HTTP's where no RPC was made.
HttpResponse ErrorResponse(int status, absl::string_view code, absl::string_view message);
// Of an RPC; with its reason (client/cpp/status.h) where the server gave one.
HttpResponse ErrorResponse(const absl::Status& error);
// 400; names the field, its value and what is allowed, each by itself too.
HttpResponse ErrorResponse(const FieldError& error);

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_ERRORS_H_
