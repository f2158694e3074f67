#include "client/testing/fake_blob_service.h"

#include <string>

#include "client/testing/fake_attune.h"

namespace attune::testing {
namespace {

v1::Blob CannedBlob(const std::string& principal, const std::string& file, int64_t bytes) {
  v1::Blob blob;
  blob.set_principal(principal);
  blob.set_namespace_("triton");
  blob.set_key("KKSUUFXW");
  blob.set_file(file);
  blob.set_bytes(bytes);
  blob.set_shared(principal == "token:ci");
  blob.set_sha256("4f0c");
  blob.mutable_create_time()->set_seconds(1'800'000'000);
  blob.mutable_use_time()->set_seconds(1'800'003'600);
  return blob;
}

}  // namespace

v1::ListBlobsRequest FakeBlobService::last_list() const {
  const std::lock_guard lock(mutex_);
  return last_list_;
}
v1::DeleteBlobsRequest FakeBlobService::last_delete() const {
  const std::lock_guard lock(mutex_);
  return last_delete_;
}
int FakeBlobService::deletes() const {
  const std::lock_guard lock(mutex_);
  return deletes_;
}
void FakeBlobService::KeepNothing() {
  const std::lock_guard lock(mutex_);
  empty_ = true;
}

grpc::Status FakeBlobService::ListBlobs(grpc::ServerContext*, const v1::ListBlobsRequest* request,
                                        v1::ListBlobsResponse* response) {
  const std::lock_guard lock(mutex_);
  last_list_ = *request;
  response->set_limit_bytes(int64_t{1} << 30);
  if (empty_) return grpc::Status::OK;
  if (request->page_token().empty()) {
    *response->add_blobs() = CannedBlob("token:ci", "kernel.cubin", 20480);
    response->set_next_page_token("more");
    v1::ListBlobsResponse::Total& total = *response->add_totals();
    total.set_principal("token:ci");
    total.set_namespace_("triton");
    total.set_blobs(12);
    total.set_bytes(3 << 20);
  } else {
    *response->add_blobs() = CannedBlob("uid:1000", "kernel.json", 512);
  }
  return grpc::Status::OK;
}

grpc::Status FakeBlobService::DeleteBlobs(grpc::ServerContext*, const v1::DeleteBlobsRequest* request,
                                          v1::DeleteBlobsResponse* response) {
  const std::lock_guard lock(mutex_);
  last_delete_ = *request;
  ++deletes_;
  if (request->principal() == "token:other") {
    return RichError(grpc::StatusCode::PERMISSION_DENIED, "to delete blobs of 'token:other' needs admin",
                     "PERMISSION_DENIED");
  }
  response->set_blobs(12);
  response->set_bytes(3 << 20);
  return grpc::Status::OK;
}

}  // namespace attune::testing
