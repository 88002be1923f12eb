// A Unix socket's file, and who may come in by it.

#include "api/rest/http/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>

#include "api/rest/http/listening_socket.h"
#include "tests/perfmodel/throws.h"
#include "tests/store/support.h"

namespace commtune::api::rest {
namespace {

namespace fs = std::filesystem;
constexpr uid_t kNobody = 65534;

class SocketInAFolder : public testing::Test {
 protected:
  SocketInAFolder() {
    fs::permissions(folder_.path(), fs::perms(0755));
    set_listen_address(options_, "unix:" + (folder_ / "socket").string());
  }

  fs::path path() const { return options_.unix_socket->path; }
  struct stat status() const {
    struct stat status {};
    EXPECT_EQ(::lstat(path().c_str(), &status), 0);
    return status;
  }

  /// A connection to it, or -1. Only system calls, for it is used in a child too.
  int connected() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof(address.sun_path) - 1);
    const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return client;
    ::close(client);
    return -1;
  }

  /// What a client of another user is told.
  std::string refusal_of(const ListeningSocket& socket, uid_t user) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool other = ::setgid(user) == 0 && ::setuid(user) == 0;
      const int client = other ? connected() : -1;
      ::_exit(client >= 0 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    const int accepted = socket.accept();
    std::string said = accepted >= 0 ? socket.refusal(accepted) : "nobody came";
    ::close(accepted);
    return said;
  }

  tests::TempFolder folder_;
  ServeOptions options_;
};

class UnixSocketTest : public SocketInAFolder {};
class HostileSocket : public SocketInAFolder {};

TEST(UnixSocketOptions, AreRead) {
  ServeOptions options;
  set_listen_address(options, "unix:/run/commtune.socket");
  EXPECT_EQ(options.unix_socket->path, "/run/commtune.socket");
  options.check();
  EXPECT_EQ(socket_mode_of("0660"), 0660U);
  EXPECT_EQ(socket_mode_of("666"), 0666U);
  for (const char* mode : {"", "0888", "1777", "rw", "-1", "0660 "})
    EXPECT_THAT(bad_input([&] { socket_mode_of(mode); }), testing::HasSubstr("--socket-mode"));
  for (const std::string& path : {std::string("unix:"), "unix:/" + std::string(108, 'x')})
    EXPECT_THAT(bad_input([&] { set_listen_address(options, path); }), testing::HasSubstr("unix:PATH"));
}

TEST_F(UnixSocketTest, IsItsUsersAloneAndGoesWithTheService) {
  {
    const ListeningSocket socket(options_);
    EXPECT_EQ(status().st_mode & 0777U, 0600U);
    const int client = connected();
    ASSERT_GE(client, 0);
    const int accepted = socket.accept();
    EXPECT_EQ(socket.refusal(accepted), "");
    ::close(accepted);
    ::close(client);
  }
  EXPECT_FALSE(fs::exists(fs::symlink_status(path())));
}

TEST_F(UnixSocketTest, HasTheModeAndGroupThatItIsGiven) {
  options_.unix_socket->mode = 0660;
  options_.unix_socket->owner = ":" + std::to_string(::getegid());
  const ListeningSocket socket(options_);
  EXPECT_EQ(status().st_mode & 0777U, 0660U);
  EXPECT_EQ(status().st_gid, ::getegid());
}

TEST_F(UnixSocketTest, IsHandedToTheOwnerThatItIsGiven) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a file away";
  options_.unix_socket->owner = "65534:65534";
  const ListeningSocket socket(options_);
  EXPECT_EQ(status().st_uid, 65534U);
  EXPECT_EQ(status().st_gid, 65534U);
}

TEST_F(UnixSocketTest, OfAServiceThatIsGoneIsReplaced) {
  ::close(bind_unix_socket(*options_.unix_socket).descriptor);  // as a process that is killed: the file stays
  ASSERT_TRUE(fs::exists(path()));
  const ListeningSocket socket(options_);
  EXPECT_THAT(error_text(ErrorCode::kConflict, [&] { ListeningSocket another(options_); }),
              testing::HasSubstr("in use"));
  EXPECT_TRUE(fs::exists(path()));
}

TEST_F(UnixSocketTest, NamesUsersThatDoNotExist) {
  options_.unix_socket->users = {"no-such-user"};
  EXPECT_THAT(bad_input([&] { ListeningSocket socket(options_); }), testing::HasSubstr("--allow-user"));
  options_.unix_socket->users.clear();
  options_.unix_socket->owner = "root:no-such-group";
  EXPECT_THAT(bad_input([&] { ListeningSocket socket(options_); }), testing::HasSubstr("--socket-owner"));
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(HostileSocket, UserWhoIsNotAllowedIsRefusedAlsoWhereTheModeLetsHimIn) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to act as another user";
  options_.unix_socket->mode = 0666;
  const ListeningSocket socket(options_);
  EXPECT_EQ(refusal_of(socket, kNobody), "user 65534 may not use this socket; see --allow-user");
  EXPECT_EQ(refusal_of(socket, 0), "");
}

TEST_F(HostileSocket, UserWhoIsAllowedIsNotRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to act as another user";
  options_.unix_socket->mode = 0666;
  options_.unix_socket->users = {std::to_string(kNobody)};
  const ListeningSocket socket(options_);
  EXPECT_EQ(refusal_of(socket, kNobody), "");
  EXPECT_NE(refusal_of(socket, 1), "");
}

TEST_F(HostileSocket, LinkInItsPlaceIsNotFollowed) {
  const fs::path victim = folder_ / "victim";
  std::ofstream(victim) << "mine";
  fs::create_symlink(victim, path());
  EXPECT_THAT(error_text(ErrorCode::kConflict, [&] { ListeningSocket socket(options_); }),
              testing::HasSubstr("something else than a socket"));
  EXPECT_TRUE(fs::is_symlink(path()));
  std::ifstream in(victim);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "mine");
}

TEST_F(HostileSocket, FileInItsPlaceIsKept) {
  std::ofstream(path()) << "mine";
  error_text(ErrorCode::kConflict, [&] { ListeningSocket socket(options_); });
  EXPECT_TRUE(fs::is_regular_file(path()));
}

TEST_F(HostileSocket, WhatTookItsPlaceIsLeftAlone) {
  {
    const ListeningSocket socket(options_);
    fs::remove(path());
    std::ofstream(path()) << "mine";
  }
  EXPECT_TRUE(fs::is_regular_file(path()));
}

}  // namespace
}  // namespace commtune::api::rest
