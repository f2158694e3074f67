// The blob service with canned answers: what two principals have of Triton's cache.
#ifndef ATTUNE_CLIENT_TESTING_FAKE_BLOB_SERVICE_H_
#define ATTUNE_CLIENT_TESTING_FAKE_BLOB_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <mutex>

#include "attune/v1/blob.grpc.pb.h"

namespace attune::testing {

// Thread-safe.
class FakeBlobService : public v1::BlobService::Service {
 public:
  v1::ListBlobsRequest last_list() const;
  v1::DeleteBlobsRequest last_delete() const;
  int deletes() const;
  void KeepNothing();

  grpc::Status ListBlobs(grpc::ServerContext*, const v1::ListBlobsRequest*, v1::ListBlobsResponse*) override;
  // PERMISSION_DENIED of "token:other".
  grpc::Status DeleteBlobs(grpc::ServerContext*, const v1::DeleteBlobsRequest*, v1::DeleteBlobsResponse*) override;

 private:
  mutable std::mutex mutex_;  // guards what follows
  v1::ListBlobsRequest last_list_;
  v1::DeleteBlobsRequest last_delete_;
  int deletes_ = 0;
  bool empty_ = false;
};

}  // namespace attune::testing

#endif  // ATTUNE_CLIENT_TESTING_FAKE_BLOB_SERVICE_H_
