#include "server/service/unreadable_requests.h"

#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "server/service/errors.h"

namespace attune::service {
namespace {

using google::protobuf::MethodDescriptor;
using grpc::experimental::InterceptionHookPoints;

class UnreadableRequest : public grpc::experimental::Interceptor {
 public:
  UnreadableRequest(const MethodDescriptor* method, grpc::ServerContextBase* context, const UnreadableSeen& seen)
      : method_(method), context_(context), unreadable_seen_(seen) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* call) override {
    if (call->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      unreadable_ = call->GetRecvMessage() == nullptr;
    }
    if (unreadable_ && call->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const absl::Status status = absl::InvalidArgumentError(absl::StrCat(
          "the request is not an ", method_->input_type()->full_name(), ", or has text that is not UTF-8"));
      call->ModifySendStatus(ToGrpc(status, method_->name()));
      if (unreadable_seen_) unreadable_seen_(context_, method_->name(), status);
    }
    call->Proceed();
  }

 private:
  const MethodDescriptor* const method_;
  grpc::ServerContextBase* const context_;
  const UnreadableSeen& unreadable_seen_;  // the factory's
  bool unreadable_ = false;
};

class Factory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  Factory(const std::string& service, const std::set<std::string>& raw, UnreadableSeen seen) : seen_(std::move(seen)) {
    const auto* descriptor = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    for (int i = 0; descriptor != nullptr && i < descriptor->method_count(); ++i) {
      const MethodDescriptor* method = descriptor->method(i);
      if (!raw.contains(method->name())) methods_[absl::StrCat("/", service, "/", method->name())] = method;
    }
  }

  // Null: the call goes on without.
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* call) override {
    const auto method = methods_.find(std::string_view(call->method()));
    return method == methods_.end() ? nullptr : new UnreadableRequest(method->second, call->server_context(), seen_);
  }

 private:
  const UnreadableSeen seen_;
  std::map<std::string, const MethodDescriptor*, std::less<>> methods_;  // by path
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeUnreadableRequests(
    const std::string& service, const std::set<std::string>& raw, UnreadableSeen seen) {
  return std::make_unique<Factory>(service, raw, std::move(seen));
}

}  // namespace attune::service
