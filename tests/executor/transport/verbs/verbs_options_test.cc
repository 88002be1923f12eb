#include <gmock/gmock.h>

#include <string>

#include "executor/transport/verbs/options.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

using ::testing::HasSubstr;

TEST(VerbsOptions, AreReadAsAUserSaysThem) {
  VerbsOptions options;
  read_verbs_options("device=mlx5_0:1,gid-index=3,connections=2,relaxed-ordering=off", options);
  EXPECT_EQ(options.gid.device, "mlx5_0:1");
  EXPECT_EQ(options.gid.index, 3);
  EXPECT_EQ(options.connections, 2);
  EXPECT_FALSE(options.relaxed_ordering);
}

TEST(VerbsOptions, KeepWhatIsNotSaid) {
  VerbsOptions options;
  options.gid.subnet = "10.0.0.0/24";
  read_verbs_options("connections=4", options);
  read_verbs_options("", options);
  EXPECT_EQ(options.connections, 4);
  EXPECT_EQ(options.gid.subnet, "10.0.0.0/24");
  EXPECT_EQ(options.gid.index, -1);
  EXPECT_TRUE(options.relaxed_ordering);
}

std::string refusal_of(const std::string& text) {
  VerbsOptions options;
  try {
    read_verbs_options(text, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    return error.what();
  }
  return "";
}

TEST(VerbsOptions, AreRefusedByKeyValueAndRule) {
  EXPECT_THAT(refusal_of("gid-index=x"), HasSubstr("gid-index = 'x': must be a whole number"));
  EXPECT_THAT(refusal_of("gid-index=-2"), HasSubstr("whole number"));
  EXPECT_THAT(refusal_of("gid-index=70000"), HasSubstr("between 0 and 65535"));
  EXPECT_THAT(refusal_of("connections=9"), HasSubstr("connections = 9: must be between 1 and 8"));
  EXPECT_THAT(refusal_of("connections="), HasSubstr("connections"));
  EXPECT_THAT(refusal_of("device"), HasSubstr("device = ''"));
  EXPECT_THAT(refusal_of("relaxed-ordering=yes"), HasSubstr("must be on or off"));
  EXPECT_THAT(refusal_of("device=mlx5_0,port=1"), HasSubstr("port = '1': verbs knows device"));
  EXPECT_THAT(refusal_of(","), HasSubstr("verbs knows"));
}

}  // namespace
}  // namespace commtune
