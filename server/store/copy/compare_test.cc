#include "server/store/copy/compare.h"

#include <utility>

#include "gmock/gmock.h"

namespace attune::store::copy {
namespace {

using testing::HasSubstr;

class GivenRows : public RowReader {
 public:
  explicit GivenRows(std::vector<Row> rows) : rows_(std::move(rows)) {}
  absl::StatusOr<bool> Next(Row& row) override {
    if (next_ == rows_.size()) return false;
    row = rows_[next_++];
    return true;
  }

 private:
  const std::vector<Row> rows_;
  size_t next_ = 0;
};

const Table& Trials() {
  static const auto& table = *new Table{
      .name = "trials",
      .keys = 1,
      .columns = {{"id", Type::kInt}, {"rank_us", Type::kReal}, {"job", Type::kFreeText}, {"message", Type::kBytes}}};
  return table;
}

absl::StatusOr<int64_t> Compare(std::vector<Row> source, std::vector<Row> target) {
  GivenRows from(std::move(source));
  GivenRows to(std::move(target));
  return CompareRows(Trials(), Trials().columns, {"here", from}, {"there", to});
}

Row Trial(int64_t id, double rank = 40, const std::string& job = "operations/1", const std::string& message = "m") {
  return {id, rank, job, message};
}

TEST(CompareTest, CountsRowsThatAreTheSame) {
  EXPECT_EQ(Compare({}, {}).value(), 0);
  EXPECT_EQ(Compare({Trial(1), Trial(7)}, {Trial(1), Trial(7)}).value(), 2);
}

TEST(CompareTest, NamesTheColumnThatDiffers) {
  const absl::Status status = Compare({Trial(1), Trial(7, 40)}, {Trial(1), Trial(7, 41.5)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "the copy is not the same: trials, id 7: rank_us is 40 in here and 41.5 in there");
  EXPECT_THAT(Compare({Trial(7, 40, "a")}, {Trial(7, 40, "b")}).status().message(),
              HasSubstr("trials, id 7: job is 'a' in here and 'b' in there"));
  EXPECT_THAT(Compare({Trial(7, 40, "a", "one")}, {Trial(7, 40, "a", "two")}).status().message(),
              HasSubstr("message is 3 bytes of SHA-256 "));
}

TEST(CompareTest, TellsNullFromEmpty) {
  Row null = Trial(7);
  null[2] = {};
  EXPECT_THAT(Compare({null}, {Trial(7, 40, "")}).status().message(), HasSubstr("job is null in here and '' in there"));
}

TEST(CompareTest, NamesTheRowThatIsMissing) {
  EXPECT_THAT(Compare({Trial(1), Trial(2)}, {Trial(1)}).status().message(),
              HasSubstr("trials, id 2: is in here, and not in there"));
  EXPECT_THAT(Compare({Trial(1), Trial(3)}, {Trial(1), Trial(2), Trial(3)}).status().message(),
              HasSubstr("trials, id 2: is in there, and not in here"));
  EXPECT_THAT(Compare({Trial(1), Trial(2), Trial(3)}, {Trial(1), Trial(3)}).status().message(),
              HasSubstr("trials, id 2: is in here, and not in there"));
}

}  // namespace
}  // namespace attune::store::copy
