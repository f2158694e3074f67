#include "server/workers/session.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/workers/framing.h"

namespace attune::workers {

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

absl::Status Serve(int fd, Session& session) {
  while (true) {
    worker::v1::Request request;
    absl::Status status = ReadMessage(fd, request, kNever);
    if (absl::IsUnavailable(status)) return absl::OkStatus();
    if (!status.ok()) return status;
    const worker::v1::Response response = session.Handle(request);
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

}  // namespace attune::workers
