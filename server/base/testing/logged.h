// What code under test logs.
#ifndef ATTUNE_SERVER_BASE_TESTING_LOGGED_H_
#define ATTUNE_SERVER_BASE_TESTING_LOGGED_H_

#include <gtest/gtest.h>

#include <string>

#include "server/base/log.h"

namespace attune {

// The lines that `act` writes, however many of the same events the tests before it wrote.
template <typename Act>
std::string Logged(Act act) {
  ForgetLeftOutLines();
  ::testing::internal::CaptureStderr();
  act();
  return ::testing::internal::GetCapturedStderr();
}

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_TESTING_LOGGED_H_
