#include "server/worker/session.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <new>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"
#include "server/base/framing.h"

namespace attune::worker {
namespace {

// Of one text that a worker sends.
constexpr size_t kMostText = 64 << 10;

}  // namespace

worker::v1::Response ErrorResponse(const absl::Status& status) {
  worker::v1::Response response;
  response.set_error_code(static_cast<int>(status.code()));
  response.set_error_message(std::string(status.message()));
  return response;
}

worker::v1::Response NotServed(const worker::v1::Request& request, const char* role) {
  return ErrorResponse(absl::UnimplementedError(
      absl::StrCat("request kind ", static_cast<int>(request.kind_case()), " is not served by --role=", role)));
}

namespace {

// Too little memory for one request is that request's error, not the worker's end.
worker::v1::Response Handle(Session& session, const worker::v1::Request& request) {
  try {
    return session.Handle(request);
  } catch (const std::bad_alloc&) {
    return ErrorResponse(absl::ResourceExhaustedError("the worker has too little memory left for this"));
  }
}

// What compilers, drivers and kernels say may be no UTF-8, which the daemon could not parse, and of any length.
void CleanTexts(worker::v1::Response& response) {
  const auto clean = [](std::string* text) { *text = Cleaned(*text, kMostText); };
  clean(response.mutable_error_message());
  if (response.has_compile()) clean(response.mutable_compile()->mutable_log());
  if (response.has_trial()) clean(response.mutable_trial()->mutable_detail());
  if (response.has_play_off()) {
    for (worker::v1::TrialResponse& result : *response.mutable_play_off()->mutable_results()) {
      clean(result.mutable_detail());
    }
  }
  if (response.has_describe()) {
    for (attune::v1::BackendStatus& backend : *response.mutable_describe()->mutable_backends()) {
      clean(backend.mutable_reason());
      clean(backend.mutable_compiler());
    }
  }
}

}  // namespace

absl::Status Serve(int fd, Session& session) {
  while (true) {
    worker::v1::Request request;
    absl::Status status = ReadMessage(fd, request, kNever);
    if (absl::IsUnavailable(status)) return absl::OkStatus();
    if (!status.ok()) return status;
    worker::v1::Response response = Handle(session, request);
    CleanTexts(response);
    status = WriteMessage(fd, response, kNever);
    if (absl::IsInvalidArgument(status)) status = WriteMessage(fd, ErrorResponse(status), kNever);
    if (absl::IsUnavailable(status)) return absl::OkStatus();
    if (!status.ok()) return status;
    if (response.error_code() == static_cast<int>(absl::StatusCode::kAborted)) {
      return absl::AbortedError(response.error_message());
    }
  }
}

void ExitWithPeer(int fd) {
  std::thread([fd] {
    pollfd entry = {fd, POLLRDHUP, 0};
    while (poll(&entry, 1, -1) < 0 && errno == EINTR) {
    }
    _exit(0);
  }).detach();
}

}  // namespace attune::worker
