#include "server/store/hosts.h"

#include "absl/strings/strip.h"
#include "proto/attune/quote.h"

namespace attune::store {

std::string HolderOf(absl::string_view host_name) { return std::string(absl::StripPrefix(host_name, "hosts/")); }

absl::Status NoHost(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("host ", Quoted(name), " is not known; `attune hosts` lists those that are"));
}

absl::Status CheckNewHost(const v1::Host& host) {
  if (!HolderOf(host.name()).empty() && HostName(HolderOf(host.name())) == host.name()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("host.name is ", Quoted(host.name()), "; it must be hosts/<name>"));
}

absl::Status OtherStart(absl::string_view name) {
  return absl::AbortedError(absl::StrCat(
      name, " was registered by another daemon since; --data_dir is one daemon's own, and must not be copied"));
}

absl::Status CheckForgettable(const v1::Host& host) {
  if (host.state() != v1::Host::STATE_LIVE) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(host.name(), " is alive; a host that is STOPPED or LOST can be forgotten: stop its daemon first"));
}

v1::Host::State StateOf(bool stopped, absl::Duration age) {
  if (stopped) return v1::Host::STATE_STOPPED;
  return age < kHostTtl ? v1::Host::STATE_LIVE : v1::Host::STATE_LOST;
}

}  // namespace attune::store
