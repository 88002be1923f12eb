#include "api/error_status.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace commtune::api {
namespace {

constexpr ErrorCode kAll[] = {ErrorCode::kBadInput, ErrorCode::kPoorFit,     ErrorCode::kNotFound,
                              ErrorCode::kConflict, ErrorCode::kTimeout,     ErrorCode::kPeerLost,
                              ErrorCode::kStorage,  ErrorCode::kUnavailable, ErrorCode::kInterrupted};

TEST(ErrorStatus, NamesAndExitStatusesTellCodesApart) {
  std::set<std::string_view> names;
  std::set<int> exits;
  for (const ErrorCode code : kAll) {
    names.insert(error_status(code).name);
    exits.insert(error_status(code).exit_status);
  }
  EXPECT_EQ(names.size(), std::size(kAll));
  EXPECT_EQ(exits.size(), std::size(kAll));
}

TEST(ErrorStatus, NoErrorLooksLikeSuccessOrADefect) {
  for (const ErrorCode code : kAll) {
    EXPECT_NE(error_status(code).exit_status, 0);
    EXPECT_NE(error_status(code).exit_status, kExitDefect);
    EXPECT_GE(error_status(code).http_status, 400);
  }
}

TEST(ErrorStatus, NamesLeadBackToTheirCodes) {
  for (const ErrorCode code : kAll) EXPECT_EQ(error_code_of(error_status(code).name), code);
  EXPECT_EQ(error_code_of("from a later version"), ErrorCode::kUnavailable);
}

TEST(ErrorStatus, InterruptedIsWhatTheShellShowsForControlC) {
  EXPECT_EQ(error_status(ErrorCode::kInterrupted).exit_status, 130);  // 128 + SIGINT (2)
}

}  // namespace
}  // namespace commtune::api
