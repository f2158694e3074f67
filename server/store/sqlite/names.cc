#include "server/store/sqlite/names.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace attune::store::sqlite {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

absl::StatusOr<int64_t> Intern(Connection& connection, absl::string_view select, absl::string_view insert,
                               absl::string_view text) {
  absl::StatusOr<std::optional<int64_t>> id = Statement(connection, select).Bind(text).FindInt();
  if (!id.ok()) return id.status();
  if (id->has_value()) return **id;
  if (absl::Status status = Statement(connection, insert).Bind(text).Run(); !status.ok()) return status;
  return connection.LastInsertId();
}

}  // namespace

std::optional<int64_t> IdOf(absl::string_view collection, absl::string_view name) {
  int64_t id = 0;
  if (!absl::ConsumePrefix(&name, collection) || !absl::SimpleAtoi(name, &id) || id < 1 || absl::StrCat(id) != name) {
    return std::nullopt;
  }
  return id;
}

int64_t ToNanoseconds(const google::protobuf::Timestamp& time) {
  return time.seconds() * kNanosecondsPerSecond + time.nanos();
}

google::protobuf::Timestamp FromNanoseconds(int64_t nanoseconds) {
  google::protobuf::Timestamp time;
  int64_t seconds = nanoseconds / kNanosecondsPerSecond;
  int64_t rest = nanoseconds % kNanosecondsPerSecond;
  if (rest < 0) {
    rest += kNanosecondsPerSecond;
    --seconds;
  }
  time.set_seconds(seconds);
  time.set_nanos(static_cast<int32_t>(rest));
  return time;
}

google::protobuf::Timestamp Now() { return FromNanoseconds(absl::GetCurrentTimeNanos()); }

absl::StatusOr<int64_t> InternProblem(Connection& connection, absl::string_view text) {
  return Intern(connection, "SELECT id FROM problems WHERE text = ?", "INSERT INTO problems (text) VALUES (?)", text);
}

absl::StatusOr<int64_t> InternDevice(Connection& connection, absl::string_view name) {
  return Intern(connection, "SELECT id FROM devices WHERE name = ?", "INSERT INTO devices (name) VALUES (?)", name);
}

absl::StatusOr<int64_t> InternClass(Connection& connection, absl::string_view fingerprint) {
  return Intern(connection, "SELECT id FROM device_classes WHERE fingerprint = ?",
                "INSERT INTO device_classes (fingerprint) VALUES (?)", fingerprint);
}

}  // namespace attune::store::sqlite
