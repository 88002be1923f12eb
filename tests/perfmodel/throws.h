#pragma once
// Expecting our one exception type with its code and a part of its text.

#include <gmock/gmock.h>

#include <string>

#include "perfmodel/base/error.h"

namespace commtune {

/// What `action` throws; fails the test if it throws no Error or one with another code.
template <typename Action>
std::string error_text(ErrorCode code, const Action& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

template <typename Action>
std::string bad_input(const Action& action) {
  return error_text(ErrorCode::kBadInput, action);
}

}  // namespace commtune
