// Client::Watch: a stream that outlives its connection.
#include <functional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/client_impl.h"

namespace attune {
namespace {

absl::Status Stopped(const std::string& operation) {
  return absl::CancelledError(absl::StrCat("stopped watching ", operation));
}

}  // namespace

absl::StatusOr<v1::Operation> Client::Watch(const std::string& operation,
                                            const std::function<void(const v1::Operation&)>& on_change,
                                            const std::stop_token& stop,
                                            const std::function<void(const absl::Status&)>& on_break) {
  const Clock& clock = *impl_->options.clock;
  Backoff backoff(impl_->options.retry, std::random_device()());
  absl::Time give_up = clock.Now() + impl_->options.reattach_for;
  bool attached = false;
  int attempts = 0;
  v1::WatchOperationRequest request;
  request.set_name(operation);
  for (;;) {
    if (stop.stop_requested()) return Stopped(operation);
    grpc::ClientContext context;
    if (absl::Status identified = impl_->connection.Identify(&context); !identified.ok()) return identified;
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    const auto reader = impl_->connection.stub().WatchOperation(&context, request);
    v1::Operation last;
    while (reader->Read(&last)) {
      on_change(last);
      attached = true;
      give_up = clock.Now() + impl_->options.reattach_for;
      backoff.Reset();
    }
    absl::Status status = FromGrpc(reader->Finish(), impl_->connection.server());
    if (last.done()) {
      ClearCache();  // what it promoted is the better answer now
      return last;
    }
    if (stop.stop_requested()) return Stopped(operation);
    // A stream that ends well before the operation does is a server that is going away politely.
    if (status.ok()) status = absl::UnavailableError(absl::StrCat("the stream of ", operation, " ended early"));
    if (!absl::IsUnavailable(status)) return status;
    // One that was never reached is given no more patience than any other call.
    ++attempts;
    if (!attached && attempts >= impl_->options.retry.attempts) return status;
    const absl::Duration wait = backoff.Next();
    if (clock.Now() + wait >= give_up) return status;
    if (on_break) on_break(status);
    clock.SleepFor(wait);
  }
}

}  // namespace attune
