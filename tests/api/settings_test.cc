#include "api/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using testing::HasSubstr;

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("commtune-settings-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    sources_.program = "/opt/commtune/bin/tune";
    sources_.environment["HOME"] = "/home/u";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& text) {
    auto path = folder_ / "config.json";
    std::ofstream(path) << text;
    return path;
  }
  std::string refusal() {
    try {
      resolve_settings(sources_);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  static std::string source_of(const ResolvedSettings& resolved, std::string_view name) {
    for (const ResolvedSetting& origin : resolved.origins)
      if (origin.row->name == name) return origin.source;
    return "absent";
  }

  std::filesystem::path folder_;
  SettingSources sources_;
};

TEST_F(SettingsTest, DefaultsFollowTheXdgDirectories) {
  EXPECT_EQ(resolve_settings(sources_).settings.database, "/home/u/.local/share/commtune/commtune.db");
  sources_.environment["XDG_DATA_HOME"] = "/data";
  const ResolvedSettings resolved = resolve_settings(sources_);
  EXPECT_EQ(resolved.settings.database, "/data/commtune/commtune.db");
  EXPECT_EQ(resolved.settings.local_ranks, 4);
  EXPECT_EQ(resolved.settings.rank_program, "/opt/commtune/bin/tune-rank");
  EXPECT_EQ(source_of(resolved, "db"), "default");
}

TEST_F(SettingsTest, ARelativeXdgDirectoryIsIgnored) {
  sources_.environment["XDG_DATA_HOME"] = "data";
  EXPECT_EQ(resolve_settings(sources_).settings.database, "/home/u/.local/share/commtune/commtune.db");
}

TEST_F(SettingsTest, FlagsWinOverVariablesAndTheseOverTheFile) {
  sources_.file = write(R"({"cluster": "from-file", "local_ranks": 2, "db": "/file.db"})");
  sources_.environment["COMMTUNE_CLUSTER"] = "from-variable";
  sources_.environment["COMMTUNE_DB"] = "/variable.db";
  sources_.flags["db"] = "/flag.db";
  const ResolvedSettings resolved = resolve_settings(sources_);
  EXPECT_EQ(resolved.settings.database, "/flag.db");
  EXPECT_EQ(resolved.settings.cluster, "from-variable");
  EXPECT_EQ(resolved.settings.local_ranks, 2);
  EXPECT_EQ(source_of(resolved, "db"), "--db");
  EXPECT_EQ(source_of(resolved, "cluster"), "COMMTUNE_CLUSTER");
  EXPECT_EQ(source_of(resolved, "local_ranks"), sources_.file.string());
}

TEST_F(SettingsTest, AnEmptyVariableHasNoEffect) {
  sources_.environment["COMMTUNE_CLUSTER"] = "";
  EXPECT_EQ(resolve_settings(sources_).settings.cluster, "local");
}

TEST_F(SettingsTest, AMalformedVariableIsNamedWithValueAndRule) {
  sources_.environment["COMMTUNE_LOCAL_RANKS"] = "four";
  EXPECT_EQ(refusal(), "COMMTUNE_LOCAL_RANKS = \"four\": must be a whole number from 1 to 65536");
  sources_.environment["COMMTUNE_LOCAL_RANKS"] = "0";
  EXPECT_THAT(refusal(), HasSubstr("COMMTUNE_LOCAL_RANKS = \"0\""));
  sources_.environment.erase("COMMTUNE_LOCAL_RANKS");
  sources_.environment["COMMTUNE_START_TIMEOUT"] = "60";
  EXPECT_EQ(refusal(),
            "COMMTUNE_START_TIMEOUT = \"60\": must be a duration with its unit, such as 60s or 5min");
  sources_.environment.erase("COMMTUNE_START_TIMEOUT");
  sources_.environment["COMMTUNE_PROGRESS"] = "yes";
  EXPECT_EQ(refusal(), "COMMTUNE_PROGRESS = \"yes\": must be auto, always, never or json");
}

TEST_F(SettingsTest, ASubnetIsANetwork) {
  EXPECT_EQ(resolve_settings(sources_).settings.subnet, "");
  sources_.environment["COMMTUNE_SUBNET"] = "10.1.0.0/16";
  EXPECT_EQ(resolve_settings(sources_).settings.subnet, "10.1.0.0/16");
  sources_.flags["subnet"] = "192.168.7.0/24";
  EXPECT_EQ(resolve_settings(sources_).settings.subnet, "192.168.7.0/24");
  sources_.flags["subnet"] = "fd00::/64";
  EXPECT_EQ(resolve_settings(sources_).settings.subnet, "fd00::/64");
  for (const char* wrong :
       {"10.1.0.0", "10.1.0.0/0", "10.1.0.0/33", "10.1.0.0/24x", "10.1/16", "eth0", "/24"}) {
    sources_.flags["subnet"] = wrong;
    EXPECT_EQ(refusal(), "--subnet = \"" + std::string(wrong) +
                             "\": must be a network such as 10.0.0.0/24 or fd00::/64");
  }
}

TEST_F(SettingsTest, OptionsOfANetworkAreAnyText) {
  EXPECT_EQ(resolve_settings(sources_).settings.network_options, "");
  sources_.environment["COMMTUNE_NETWORK_OPTIONS"] = "device=mlx5_0";
  EXPECT_EQ(resolve_settings(sources_).settings.network_options, "device=mlx5_0");
}

TEST_F(SettingsTest, FitsAreMarkedFromThirtyDaysOnUnlessSaidOtherwise) {
  EXPECT_EQ(resolve_settings(sources_).settings.fit_age, Seconds{30 * 86400.0});
  sources_.environment["COMMTUNE_FIT_AGE"] = "12h";
  EXPECT_EQ(resolve_settings(sources_).settings.fit_age, Seconds{12 * 3600.0});
  sources_.environment["COMMTUNE_FIT_AGE"] = "30";
  EXPECT_EQ(refusal(), "COMMTUNE_FIT_AGE = \"30\": must be a duration of at most 1000d, such as 30d or 12h");
}

TEST_F(SettingsTest, AMalformedFileIsNamedWithThePlace) {
  sources_.file = write(R"({"local_ranks": -1})");
  EXPECT_THAT(refusal(), HasSubstr("config.json: local_ranks = \"-1\": must be a whole number"));
  sources_.file = write(R"({"clutser": "lab"})");
  EXPECT_THAT(refusal(), HasSubstr("unknown setting \"clutser\" (did you mean \"cluster\"?)"));
  sources_.file = write("[1]");
  EXPECT_THAT(refusal(), HasSubstr("expected an object"));
  sources_.file = write("{");
  EXPECT_THAT(refusal(), HasSubstr("config.json"));
}

TEST_F(SettingsTest, ANamedFileMustExistAndTheDefaultOneNeedNot) {
  EXPECT_FALSE(resolve_settings(sources_).file_exists);
  EXPECT_EQ(resolve_settings(sources_).file, "/home/u/.config/commtune/config.json");
  sources_.environment["COMMTUNE_CONFIG"] = (folder_ / "absent.json").string();
  EXPECT_THAT(refusal(), HasSubstr("absent.json: does not exist"));
}

TEST_F(SettingsTest, AVariableThatNothingReadsIsToldOf) {
  sources_.environment["COMMTUNE_CLUSTERS"] = "lab";
  const ResolvedSettings resolved = resolve_settings(sources_);
  ASSERT_EQ(resolved.warnings.size(), 1U);
  EXPECT_EQ(resolved.warnings[0],
            "COMMTUNE_CLUSTERS is set but nothing reads it (did you mean \"COMMTUNE_CLUSTER\"?)");
}

}  // namespace
}  // namespace commtune::api
