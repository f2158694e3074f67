// Bearer tokens: who brings one is "token:NAME", with the token's role, until it expires or is revoked.
//
// They are in a file of the data directory and not in the store: a backup or a copy of the results carries nobody's
// access. The file holds SHA-256 hashes. Secrets are 256 random bits, so that neither salt nor a slow hash would add
// anything.
#ifndef ATTUNE_SERVER_ACCESS_TOKENS_H_
#define ATTUNE_SERVER_ACCESS_TOKENS_H_

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/access.pb.h"
#include "server/access/principal.h"

namespace attune::access {

// Thread-safe; Find takes no lock.
class Tokens {
 public:
  static constexpr size_t kMostTokens = 1000;
  static constexpr absl::Duration kShortest = absl::Minutes(1);
  static constexpr absl::Duration kLongest = absl::Hours(24 * 3650);
  static constexpr absl::Duration kDefault = absl::Hours(24 * 90);

  // Reads what the file at `path` holds; there may be none. DataLoss names a file that is damaged. `slots`: of the hash
  // table, more than kMostTokens.
  static absl::StatusOr<std::unique_ptr<Tokens>> Open(const std::string& path, size_t slots = 4096);

  // The token is on the disk when this returns. InvalidArgument names the field, its value and what is allowed;
  // AlreadyExists; ResourceExhausted beyond kMostTokens.
  absl::StatusOr<v1::CreateTokenResponse> Create(const v1::CreateTokenRequest& request, absl::string_view created_by,
                                                 absl::Time now);
  std::vector<v1::Token> List() const;  // by name
  // Where the disk takes nothing, it is refused until the next start; to be revoked once more.
  absl::StatusOr<v1::Token> Revoke(absl::string_view name);

  // Whose secret it is. Unauthenticated, with a reason: TOKEN_UNKNOWN (also of a revoked one) or TOKEN_EXPIRED. The
  // principal lives as long as this.
  absl::StatusOr<const Principal*> Find(absl::string_view secret, absl::Time now) const;

 private:
  // Never freed before the others, so that a reader who found it may keep it.
  struct Entry {
    v1::Token token;
    std::string sha256;
    Principal principal;
    absl::Time expires;
    std::atomic<bool> revoked = false;
    bool in_file = false;  // guarded by mutex_
  };
  // A hash table of open addressing. A slot once taken is never empty again, only given to another entry.
  Tokens(std::string path, size_t slots) : path_(std::move(path)), slots_(slots) {}

  const Entry* Look(const std::string& sha256) const;
  // With mutex_ held.
  Entry* Named(absl::string_view name);
  // One that was revoked while the disk took nothing: a restart would have it back.
  Entry* RevokedButInFile(absl::string_view name);
  size_t Live() const;
  Entry& Add(v1::Token token, std::string sha256, Role role);
  absl::Status Save();

  const std::string path_;
  std::vector<std::atomic<Entry*>> slots_;
  mutable std::mutex mutex_;  // guards what follows, and who writes slots_
  std::deque<Entry> entries_;
};

}  // namespace attune::access

#endif  // ATTUNE_SERVER_ACCESS_TOKENS_H_
