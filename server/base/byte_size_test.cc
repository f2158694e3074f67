#include "server/base/byte_size.h"

#include "gtest/gtest.h"

namespace attune {
namespace {

TEST(ByteSize, IsANumberWithAUnit) {
  for (const auto& [text, bytes] : {std::pair("0", int64_t{0}), std::pair("512B", int64_t{512}),
                                    std::pair("3KiB", int64_t{3} << 10), std::pair("16MiB", int64_t{16} << 20),
                                    std::pair("10GiB", int64_t{10} << 30), std::pair("2TiB", int64_t{2} << 40)}) {
    ByteSize size{-1};
    std::string error;
    EXPECT_TRUE(AbslParseFlag(text, &size, &error)) << text << ": " << error;
    EXPECT_EQ(size.bytes, bytes) << text;
    EXPECT_EQ(AbslUnparseFlag(size), text);
  }
}

TEST(ByteSize, IsNothingElse) {
  for (const char* text :
       {"", "10", "-1GiB", "1.5GiB", "10GB", "10gib", "10 GiB", "GiB", "99999999TiB", "99999999999999999999B"}) {
    ByteSize size;
    std::string error;
    EXPECT_FALSE(AbslParseFlag(text, &size, &error)) << text;
    EXPECT_EQ(error, "allowed: 0 and whole numbers with B, KiB, MiB, GiB or TiB, as in 10GiB");
  }
}

}  // namespace
}  // namespace attune
