// The calls that read histories of what is served.
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/deadline.h"
#include "server/catalog/retimings.h"
#include "server/service/attune_service.h"
#include "server/service/calls.h"
#include "server/sweep/trends.h"

namespace attune::service {
namespace {

// For lists made of the histories of many problems.
constexpr absl::Duration kMostReading = absl::Seconds(30);

bool IsOver(Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

space::Stopped GoneOrAfter(grpc::CallbackServerContext* context, Deadline by) {
  return [context, by] { return context->IsCancelled() || IsOver(by); };
}

// Why reading was stopped: it took until `by`, or nobody waits for it.
absl::Status WhyStopped(const absl::Status& status, Deadline by) {
  if (!absl::IsCancelled(status) || !IsOver(by)) return status;
  return absl::DeadlineExceededError(absl::StrCat("reading these histories took ", absl::FormatDuration(kMostReading),
                                                  "; name a problem or ask for a smaller page"));
}

}  // namespace

grpc::ServerUnaryReactor* AttuneServiceImpl::ListRetimings(grpc::CallbackServerContext* context,
                                                           const v1::ListRetimingsRequest* request,
                                                           v1::ListRetimingsResponse* response) {
  return Later(context, "ListRetimings", *request, [this, request, response]() -> absl::Status {
    const absl::StatusOr<int> size = PageSize(request->page_size());
    if (!size.ok()) return size.status();
    v1::ListRetimingsRequest valid = *request;
    if (absl::Status status = Validate(valid); !status.ok()) return status;
    auto page = catalog::ListRetimings(valid, *size, *options_.store, *options_.host);
    if (!page.ok()) return page.status();
    for (v1::Retiming& retiming : page->items) *response->add_retimings() = std::move(retiming);
    response->set_next_page_token(page->next_page_token);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::ListTrends(grpc::CallbackServerContext* context,
                                                        const v1::ListTrendsRequest* request,
                                                        v1::ListTrendsResponse* response) {
  return Later(
      context, "ListTrends", *request,
      [this, context, request, response]() -> absl::Status {
        const absl::StatusOr<int> size = PageSize(request->page_size());
        if (!size.ok()) return size.status();
        v1::ListTrendsRequest valid = *request;
        if (absl::Status status = Validate(valid); !status.ok()) return status;
        const Deadline by = After(kMostReading);
        auto page = sweep::ListTrends(valid, *size, *options_.store, *options_.host, GoneOrAfter(context, by));
        if (!page.ok()) return WhyStopped(page.status(), by);
        for (v1::Trend& trend : page->items) *response->add_trends() = std::move(trend);
        response->set_next_page_token(page->next_page_token);
        return absl::OkStatus();
      },
      &history_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::CompareTimes(grpc::CallbackServerContext* context,
                                                          const v1::CompareTimesRequest* request,
                                                          v1::CompareTimesResponse* response) {
  return Later(
      context, "CompareTimes", *request,
      [this, context, request, response]() -> absl::Status {
        v1::CompareTimesRequest valid = *request;
        if (absl::Status status = Validate(valid); !status.ok()) return status;
        const Deadline by = After(kMostReading);
        auto compared = sweep::CompareTimes(valid, *options_.store, *options_.host, GoneOrAfter(context, by));
        if (!compared.ok()) return WhyStopped(compared.status(), by);
        *response = *std::move(compared);
        return absl::OkStatus();
      },
      &history_);
}

}  // namespace attune::service
