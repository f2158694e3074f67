#include "server/base/sha256.h"

#include "gtest/gtest.h"

namespace attune {
namespace {

// FIPS 180-2, appendix B.1.
TEST(Sha256, MatchesThePublishedVector) {
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace attune
