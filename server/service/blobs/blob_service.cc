#include "server/service/blobs/blob_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"
#include "server/service/blobs/blob_requests.h"
#include "server/service/calls.h"
#include "server/service/limits.h"
#include "server/service/validate.h"

namespace attune::service {
namespace {

constexpr int kBlobReaders = 2;
// Puts wait for the disk one after the other.
constexpr int kBlobWriters = 1;

// What the caller may not do to another's blobs.
absl::Status NotTheirs(absl::string_view owner, const access::Principal& caller) {
  return absl::PermissionDeniedError(absl::StrCat(caller.name, " has the role ", access::RoleName(caller.role),
                                                  "; to delete blobs of ", Quoted(owner), " needs admin"));
}

}  // namespace

BlobServiceImpl::BlobServiceImpl(store::BlobStore* blobs)
    : blobs_(*blobs), reading_(kBlobReaders), writing_(kBlobWriters) {}

grpc::ServerUnaryReactor* BlobServiceImpl::GetBlobs(grpc::CallbackServerContext* context,
                                                    const v1::GetBlobsRequest* request,
                                                    v1::GetBlobsResponse* response) {
  return Later(context, "GetBlobs", *request, reading_, [this, context, request, response]() -> absl::Status {
    if (absl::Status status = Validate(*request); !status.ok()) return status;
    const access::Principal& caller = PrincipalOf(*context);
    std::vector<std::string> owners(request->principals().begin(), request->principals().end());
    if (owners.empty()) owners.push_back(caller.name);
    for (const std::string& owner : owners) {
      const absl::StatusOr<bool> got = GetFrom(OwnerOf(owner, caller), *request, caller, response);
      if (!got.ok()) return got.status();
      if (*got) return absl::OkStatus();
      response->Clear();
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<bool> BlobServiceImpl::GetFrom(const std::string& owner, const v1::GetBlobsRequest& request,
                                              const access::Principal& caller, v1::GetBlobsResponse* response) {
  absl::StatusOr<std::vector<v1::Blob>> found =
      blobs_.Find({owner, request.namespace_(), request.key(), {request.files().begin(), request.files().end()}});
  if (!found.ok()) return found.status();
  if (found->size() != static_cast<size_t>(request.files_size())) return false;
  int64_t bytes = 0;
  for (v1::Blob& blob : *found) {
    if (!MayRead(blob, caller)) return false;
    if (bytes + blob.bytes() > kMostBlobBytes) {
      response->add_left_out(blob.file());
      continue;
    }
    absl::StatusOr<std::string> data = blobs_.Read(blob);
    if (absl::IsNotFound(data.status())) return false;
    if (!data.ok()) return data.status();
    bytes += blob.bytes();
    blob.set_data(*std::move(data));
    *response->add_blobs() = std::move(blob);
  }
  return true;
}

grpc::ServerUnaryReactor* BlobServiceImpl::PutBlob(grpc::CallbackServerContext* context,
                                                   const v1::PutBlobRequest* request, v1::Blob* response) {
  return Later(context, "PutBlob", *request, writing_, [this, context, request, response]() -> absl::Status {
    if (absl::Status status = Validate(*request); !status.ok()) return status;
    v1::Blob blob;
    blob.set_principal(PrincipalOf(*context).name);
    blob.set_namespace_(request->namespace_());
    blob.set_key(request->key());
    blob.set_file(request->file());
    blob.set_data(request->data());
    blob.set_shared(request->shared());
    return Fill(blobs_.Put(blob), response);
  });
}

grpc::ServerUnaryReactor* BlobServiceImpl::ListBlobs(grpc::CallbackServerContext* context,
                                                     const v1::ListBlobsRequest* request,
                                                     v1::ListBlobsResponse* response) {
  return Later(context, "ListBlobs", *request, reading_, [this, context, request, response]() -> absl::Status {
    const absl::StatusOr<int> size = PageSize(request->page_size());
    if (!size.ok()) return size.status();
    const store::BlobFilter filter = FilterFor(*request, PrincipalOf(*context));
    auto page = blobs_.List(filter, *size, request->page_token());
    if (!page.ok()) return page.status();
    for (v1::Blob& blob : page->items) *response->add_blobs() = std::move(blob);
    response->set_next_page_token(page->next_page_token);
    response->set_limit_bytes(blobs_.limit());
    if (!request->page_token().empty()) return absl::OkStatus();
    auto totals = blobs_.Totals(filter);
    if (!totals.ok()) return totals.status();
    for (auto& total : *totals) *response->add_totals() = std::move(total);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* BlobServiceImpl::DeleteBlobs(grpc::CallbackServerContext* context,
                                                       const v1::DeleteBlobsRequest* request,
                                                       v1::DeleteBlobsResponse* response) {
  return Later(context, "DeleteBlobs", *request, writing_, [this, context, request, response]() -> absl::Status {
    const access::Principal& caller = PrincipalOf(*context);
    const std::string owner = request->principal().empty() ? caller.name : OwnerOf(request->principal(), caller);
    if (owner != caller.name && caller.role != access::Role::kAdmin) return NotTheirs(owner, caller);
    const auto removed = blobs_.Delete({.principal = owner, .cache = request->namespace_(), .key = request->key()});
    if (!removed.ok()) return removed.status();
    response->set_blobs(removed->blobs);
    response->set_bytes(removed->bytes);
    return absl::OkStatus();
  });
}

}  // namespace attune::service
