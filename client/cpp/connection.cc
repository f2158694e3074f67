#include "client/cpp/connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/token.h"

namespace attune {
namespace {

constexpr int kLargestMessageBytes = 256 << 20;  // an answer carries its artifact

constexpr unsigned kReloadSeconds = 10;

// gRPC's own, which verifies the server and its name, and reads the files again. TLS 1.2 is the least that it speaks.
std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const TlsOptions& tls) {
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsChannelCredentialsOptions options;
  if (!tls.ca.empty() || !tls.certificate.empty()) {
    options.set_certificate_provider(
        std::make_shared<FileWatcherCertificateProvider>(tls.key, tls.certificate, tls.ca, kReloadSeconds));
  }
  if (!tls.ca.empty()) options.watch_root_certs();
  if (!tls.certificate.empty()) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

// gRPC itself waits before it connects again after a failure; that wait must not swallow RetryPolicy's.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& server, const RetryPolicy& retry, const TlsOptions& tls) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   std::max<int>(20, static_cast<int>(absl::ToInt64Milliseconds(retry.initial_wait))));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   std::max<int>(100, static_cast<int>(absl::ToInt64Milliseconds(retry.longest_wait))));
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(kLargestMessageBytes);
  if (!IsEncrypted(server, tls)) {
    return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
  }
  if (!tls.server_name.empty()) arguments.SetSslTargetNameOverride(tls.server_name);
  return grpc::CreateCustomChannel(server, CredentialsOf(tls), arguments);
}

}  // namespace

Connection::Connection(std::string server, const RetryPolicy& retry, const Clock* clock, std::string token_file,
                       const TlsOptions& tls)
    : server_(std::move(server)),
      retry_(retry),
      clock_(clock),
      token_file_(std::move(token_file)),
      channel_(MakeChannel(server_, retry, tls)),
      stub_(v1::AttuneService::NewStub(channel_)),
      access_(v1::AccessService::NewStub(channel_)),
      blobs_(v1::BlobService::NewStub(channel_)),
      fleet_(v1::FleetService::NewStub(channel_)) {}

absl::Status Connection::Identify(grpc::ClientContext* context) const {
  if (token_file_.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> token = ReadToken(token_file_);
  if (token.ok()) context->AddMetadata("authorization", absl::StrCat("Bearer ", *token));
  return token.status();
}

}  // namespace attune
