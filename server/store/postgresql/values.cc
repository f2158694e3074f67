#include "server/store/postgresql/values.h"

#include <bit>
#include <cstddef>
#include <utility>

#include "absl/strings/numbers.h"

namespace attune::store::postgresql {
namespace {

// Fixed in pg_type.dat; libpq's headers do not have them.
constexpr Oid kBoolean = 16;
constexpr Oid kBytea = 17;
constexpr Oid kBigint = 20;
constexpr Oid kText = 25;
constexpr Oid kDouble = 701;
constexpr int kBinary = 1;

std::string BigEndian(uint64_t value) {
  std::string bytes(sizeof value, '\0');
  for (size_t i = bytes.size(); i-- > 0; value >>= 8) bytes[i] = static_cast<char>(value & 0xff);
  return bytes;
}

}  // namespace

void Parameters::Add(Oid type, std::string bytes) {
  types_.push_back(type);
  values_.emplace_back(std::move(bytes));
}

void Parameters::Add(int64_t value) { Add(kBigint, BigEndian(static_cast<uint64_t>(value))); }

void Parameters::Add(double value) { Add(kDouble, BigEndian(std::bit_cast<uint64_t>(value))); }

void Parameters::Add(bool value) { Add(kBoolean, std::string(1, value ? '\1' : '\0')); }

void Parameters::Add(absl::string_view text) { Add(kText, std::string(text)); }

void Parameters::Add(Blob blob) { Add(kBytea, std::string(blob.bytes)); }

void Parameters::Add(const Parameters& others) {
  types_.insert(types_.end(), others.types_.begin(), others.types_.end());
  values_.insert(values_.end(), others.values_.begin(), others.values_.end());
}

bool Parameters::Send(PGconn* connection, const std::string& sql) const {
  std::vector<const char*> bytes;
  std::vector<int> lengths;
  for (const std::optional<std::string>& value : values_) {
    bytes.push_back(value.has_value() ? value->data() : nullptr);
    lengths.push_back(value.has_value() ? static_cast<int>(value->size()) : 0);
  }
  const std::vector<int> formats(values_.size(), kBinary);
  return PQsendQueryParams(connection, sql.c_str(), static_cast<int>(values_.size()), types_.data(), bytes.data(),
                           lengths.data(), formats.data(), kBinary) == 1;
}

absl::StatusOr<bool> Rows::Step() { return ++row_ < PQntuples(result_.get()); }

int64_t Rows::changed() const {
  int64_t rows = 0;
  return absl::SimpleAtoi(PQcmdTuples(result_.get()), &rows) ? rows : 0;
}

absl::string_view Rows::Bytes(int column) const {
  return {PQgetvalue(result_.get(), row_, column), static_cast<size_t>(PQgetlength(result_.get(), row_, column))};
}

int64_t Rows::Int(int column) const {
  const absl::string_view bytes = Bytes(column);
  if (bytes.empty()) return 0;
  const bool negative = (static_cast<unsigned char>(bytes[0]) & 0x80) != 0;
  uint64_t value = negative ? ~uint64_t{0} : 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return static_cast<int64_t>(value);
}

double Rows::Real(int column) const { return std::bit_cast<double>(Int(column)); }

bool Rows::Bool(int column) const {
  const absl::string_view bytes = Bytes(column);
  return !bytes.empty() && bytes[0] != '\0';
}

}  // namespace attune::store::postgresql
