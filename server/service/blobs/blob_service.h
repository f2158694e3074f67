// Files of other programs' caches over gRPC: whose they are, who reads them, and the store that keeps them.
#ifndef ATTUNE_SERVER_SERVICE_BLOBS_BLOB_SERVICE_H_
#define ATTUNE_SERVER_SERVICE_BLOBS_BLOB_SERVICE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/v1/blob.grpc.pb.h"
#include "server/access/principal.h"
#include "server/service/executor.h"
#include "server/store/blobs.h"

namespace attune::service {

class BlobServiceImpl final : public v1::BlobService::CallbackService {
 public:
  // `blobs` live longer.
  explicit BlobServiceImpl(store::BlobStore* blobs);

  grpc::ServerUnaryReactor* GetBlobs(grpc::CallbackServerContext*, const v1::GetBlobsRequest*,
                                     v1::GetBlobsResponse*) override;
  grpc::ServerUnaryReactor* PutBlob(grpc::CallbackServerContext*, const v1::PutBlobRequest*, v1::Blob*) override;
  grpc::ServerUnaryReactor* ListBlobs(grpc::CallbackServerContext*, const v1::ListBlobsRequest*,
                                      v1::ListBlobsResponse*) override;
  grpc::ServerUnaryReactor* DeleteBlobs(grpc::CallbackServerContext*, const v1::DeleteBlobsRequest*,
                                        v1::DeleteBlobsResponse*) override;

 private:
  // Whether `owner` has every file and the caller may read them all; the response is then what it has.
  absl::StatusOr<bool> GetFrom(const std::string& owner, const v1::GetBlobsRequest& request,
                               const access::Principal& caller, v1::GetBlobsResponse* response);

  store::BlobStore& blobs_;
  Executor reading_;
  Executor writing_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_BLOBS_BLOB_SERVICE_H_
