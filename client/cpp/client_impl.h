// What a Client is made of. Private to client/cpp.
#ifndef ATTUNE_CLIENT_CPP_CLIENT_IMPL_H_
#define ATTUNE_CLIENT_CPP_CLIENT_IMPL_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client/cpp/client.h"
#include "client/cpp/connection.h"

namespace attune {

struct Client::Impl {
  Impl(std::string server, ClientOptions client_options)
      : options(std::move(client_options)),
        connection(std::move(server), options.retry, options.clock, options.token_file, options.tls),
        cache(options.cache_capacity) {}

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request, Retry retry = Retry::kOnUnavailable,
                                absl::Duration wait = absl::ZeroDuration()) {
    return connection.Call(method, request, options.deadline + wait, retry);
  }

  // The snapshot of options.snapshot_path, read at the first call; the same result ever after.
  absl::StatusOr<std::shared_ptr<const Snapshot>> LoadedSnapshot();
  // An answer for a server that cannot be reached because of `error`: an expired one or the snapshot's.
  absl::StatusOr<AnswerPtr> Fallback(const BestQuery& query, const absl::Status& error);

  const ClientOptions options;
  Connection connection;
  AnswerCache cache;

  std::mutex mutex;  // guards what follows
  std::optional<absl::StatusOr<std::shared_ptr<const Snapshot>>> snapshot;
  // Until then the server is taken to be unreachable, because of `unreachable`.
  absl::Time unreachable_until = absl::InfinitePast();
  absl::Status unreachable;
};

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_CLIENT_IMPL_H_
