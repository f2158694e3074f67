#include "server/access/tokens.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "attune/tokens/v1/tokens.pb.h"
#include "proto/attune/quote.h"
#include "server/base/proto_time.h"
#include "server/base/reason.h"
#include "server/base/sha256.h"
#include "server/store/files.h"

namespace attune::access {
namespace {

constexpr char kPrefix[] = "tokens/";
// So that whoever finds one lying about, a scanner of repositories among them, knows what it is.
constexpr char kSecretPrefix[] = "attune_";
constexpr size_t kSecretBytes = 32;
constexpr size_t kMostId = 64;
constexpr size_t kHashDigits = 64;

absl::StatusOr<std::string> NewSecret() {
  std::string bytes(kSecretBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return absl::UnavailableError("the system gives no random numbers");
  }
  return absl::StrCat(kSecretPrefix, absl::WebSafeBase64Escape(bytes));
}

absl::Status CheckId(absl::string_view id) {
  const bool allowed = !id.empty() && id.size() <= kMostId && absl::ascii_isalnum(id[0]) &&
                       std::all_of(id.begin(), id.end(),
                                   [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; });
  if (allowed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("id is ", Quoted(id), "; allowed: 1 to ", kMostId,
                                                 " letters, digits, '-', '_' and '.', the first a letter or a digit"));
}

absl::StatusOr<absl::Duration> LifetimeOf(const v1::CreateTokenRequest& request) {
  if (!request.has_lifetime()) return Tokens::kDefault;
  const absl::Duration lifetime = DurationOf(request.lifetime());
  if (lifetime >= Tokens::kShortest && lifetime <= Tokens::kLongest) return lifetime;
  return absl::InvalidArgumentError(absl::StrCat("lifetime is ", absl::FormatDuration(lifetime),
                                                 "; allowed: ", absl::FormatDuration(Tokens::kShortest), " to ",
                                                 absl::FormatDuration(Tokens::kLongest)));
}

// Where its search begins.
size_t Home(const std::string& sha256, size_t slots) {
  uint64_t start = 0;
  return absl::SimpleHexAtoi(sha256.substr(0, 8), &start) ? start % slots : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokens>> Tokens::Open(const std::string& path, size_t slots) {
  std::unique_ptr<Tokens> opened(new Tokens(path, slots));
  const absl::StatusOr<std::string> bytes = store::ReadFile(path);
  if (absl::IsNotFound(bytes.status())) return opened;
  if (!bytes.ok()) return bytes.status();
  tokens::v1::TokenFile kept;
  bool good = kept.ParseFromString(*bytes) && kept.entries_size() <= static_cast<int>(kMostTokens);
  for (tokens::v1::TokenFile::Entry& entry : *kept.mutable_entries()) {
    const absl::StatusOr<Role> role = ParseRole(entry.token().role());
    good = good && role.ok() && entry.sha256().size() == kHashDigits && opened->Named(entry.token().name()) == nullptr;
    if (good) opened->Add(std::move(*entry.mutable_token()), std::move(*entry.mutable_sha256()), *role).in_file = true;
  }
  if (good) return opened;
  return absl::DataLossError(absl::StrCat(path, " is damaged; without it the daemon starts and knows no token"));
}

absl::StatusOr<v1::CreateTokenResponse> Tokens::Create(const v1::CreateTokenRequest& request,
                                                       absl::string_view created_by, absl::Time now) {
  if (absl::Status id = CheckId(request.id()); !id.ok()) return id;
  const absl::StatusOr<Role> role = ParseRole(request.role());
  if (!role.ok() || *role == Role::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("role is ", Quoted(request.role()), "; allowed: reader, tuner, author, admin"));
  }
  const absl::StatusOr<absl::Duration> lifetime = LifetimeOf(request);
  if (!lifetime.ok()) return lifetime.status();
  absl::StatusOr<std::string> secret = NewSecret();
  if (!secret.ok()) return secret.status();
  v1::CreateTokenResponse response;
  v1::Token& token = *response.mutable_token();
  token.set_name(absl::StrCat(kPrefix, request.id()));
  token.set_role(request.role());
  SetTimestamp(now, token.mutable_create_time());
  SetTimestamp(now + *lifetime, token.mutable_expire_time());
  token.set_created_by(std::string(created_by));
  response.set_secret(*std::move(secret));

  const std::lock_guard lock(mutex_);
  if (Named(token.name()) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat("there is a token ", Quoted(token.name()), "; revoke it first"));
  }
  if (Live() >= kMostTokens) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", kMostTokens, " tokens; revoke one, or one that has expired"));
  }
  Entry& entry = Add(token, Sha256(response.secret()), *role);
  if (absl::Status saved = Save(); !saved.ok()) {
    entry.revoked = true;
    return saved;
  }
  return response;
}

std::vector<v1::Token> Tokens::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<v1::Token> tokens;
  for (const Entry& entry : entries_) {
    if (!entry.revoked) tokens.push_back(entry.token);
  }
  std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.name() < b.name(); });
  return tokens;
}

absl::StatusOr<v1::Token> Tokens::Revoke(absl::string_view name) {
  const std::lock_guard lock(mutex_);
  Entry* entry = Named(name);
  if (entry == nullptr) entry = RevokedButInFile(name);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no token ", Quoted(name), "; `attune token list` lists them"));
  }
  entry->revoked = true;  // whatever the disk says: from now on it is refused
  if (absl::Status saved = Save(); !saved.ok()) return saved;
  return entry->token;
}

absl::StatusOr<const Principal*> Tokens::Find(absl::string_view secret, absl::Time now) const {
  const Entry* const entry = Look(Sha256(secret));
  if (entry == nullptr || entry->revoked) {
    return WithReason(absl::UnauthenticatedError("the call's token is not known, or was revoked"), "TOKEN_UNKNOWN");
  }
  if (now >= entry->expires) {
    return WithReason(
        absl::UnauthenticatedError(absl::StrCat(entry->principal.name, " expired ",
                                                absl::FormatTime("%Y-%m-%d %H:%M", entry->expires, absl::UTCTimeZone()),
                                                " UTC; have another one made")),
        "TOKEN_EXPIRED");
  }
  return &entry->principal;
}

const Tokens::Entry* Tokens::Look(const std::string& sha256) const {
  for (size_t i = 0, slot = Home(sha256, slots_.size()); i < slots_.size(); ++i, slot = (slot + 1) % slots_.size()) {
    const Entry* const entry = slots_[slot].load(std::memory_order_acquire);
    if (entry == nullptr) return nullptr;
    if (entry->sha256 == sha256) return entry;
  }
  return nullptr;
}

Tokens::Entry* Tokens::Named(absl::string_view name) {
  for (Entry& entry : entries_) {
    if (!entry.revoked && entry.token.name() == name) return &entry;
  }
  return nullptr;
}

Tokens::Entry* Tokens::RevokedButInFile(absl::string_view name) {
  for (Entry& entry : entries_) {
    if (entry.revoked && entry.in_file && entry.token.name() == name) return &entry;
  }
  return nullptr;
}

size_t Tokens::Live() const {
  return static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.revoked; }));
}

Tokens::Entry& Tokens::Add(v1::Token token, std::string sha256, Role role) {
  Entry& entry = entries_.emplace_back();
  entry.expires = absl::FromUnixSeconds(token.expire_time().seconds());
  entry.principal = {absl::StrCat("token:", absl::StripPrefix(token.name(), kPrefix)), role};
  entry.token = std::move(token);
  entry.sha256 = std::move(sha256);
  // There are far more slots than tokens that are not revoked.
  size_t slot = Home(entry.sha256, slots_.size());
  for (Entry* there = slots_[slot]; there != nullptr && !there->revoked; there = slots_[slot]) {
    slot = (slot + 1) % slots_.size();
  }
  slots_[slot].store(&entry, std::memory_order_release);
  return entry;
}

absl::Status Tokens::Save() {
  tokens::v1::TokenFile file;
  for (const Entry& entry : entries_) {
    if (entry.revoked) continue;
    tokens::v1::TokenFile::Entry& kept = *file.add_entries();
    *kept.mutable_token() = entry.token;
    kept.set_sha256(entry.sha256);
  }
  if (absl::Status saved = store::ReplaceFile(path_, file.SerializeAsString()); !saved.ok()) return saved;
  for (Entry& entry : entries_) entry.in_file = !entry.revoked;
  return absl::OkStatus();
}

}  // namespace attune::access
