#pragma once
// The made-up lab in a store of its own, and a question about it that takes no draws.

#include <gtest/gtest.h>

#include "api/actions/context.h"
#include "api/question/question.h"
#include "tests/api/rest/made_lab.h"
#include "tests/store/support.h"

namespace commtune::api {

class LabTest : public ::testing::Test {
 protected:
  LabTest() {
    make_lab(store_, profile_);
    question_.profile = profile_;
    question_.cluster.name = "lab";
    question_.draws = 0;
  }

  const Profile profile_ = commtune::tests::small_profile();
  const Settings settings_ = [] {
    Settings settings;
    settings.fit_age = Seconds{1000};
    return settings;
  }();
  Environment environment_;
  Store store_ = commtune::tests::memory_store();
  Cancellation cancellation_;
  Context context_{settings_, environment_, store_, cancellation_, {}};
  Question question_;
};

}  // namespace commtune::api
