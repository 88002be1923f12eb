// Each hook of the HTTP library that reply_writer.h names: a version that fails here is not to be used.

#include "api/rest/http/reply_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace commtune::api::rest {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

/// A client and the connection that serves it, in one thread: what is sent here fits into the socket.
class ReplyWriterTest : public testing::Test {
 protected:
  ReplyWriterTest() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets_.data()), 0);
    connection_ = std::make_unique<HttpConnection>(sockets_[0], nullptr, stop_, ConnectionLimits{});
  }
  ~ReplyWriterTest() override {
    hang_up();
    ::close(stop_);
  }

  void hang_up() {
    if (sockets_[1] >= 0) ::close(sockets_[1]);
    sockets_[1] = -1;
  }

  /// The connection has read the head of it.
  void ask(const std::string& request) {
    ASSERT_EQ(::send(sockets_[1], request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    ASSERT_EQ(connection_->read_head(10s), HttpConnection::Head::kComplete);
  }

  bool answer(Reply reply, bool closes = false) {
    return writer_.write(*connection_, std::move(reply), closes) && connection_->flush();
  }

  /// What the client has got by now and has not read.
  std::string received() {
    std::string text(1U << 16U, '\0');
    const ssize_t got = ::recv(sockets_[1], text.data(), text.size(), MSG_DONTWAIT);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

  static Reply text(std::string body) {
    Reply reply;
    reply.body = std::move(body);
    return reply;
  }
  static std::string get(const std::string& lines = "") {
    return "GET /a HTTP/1.1\r\nHost: x\r\n" + lines + "\r\n";
  }

  ReplyWriter writer_{60s};
  std::array<int, 2> sockets_{-1, -1};
  const int stop_ = ::eventfd(0, EFD_CLOEXEC);
  std::unique_ptr<HttpConnection> connection_;
};

TEST_F(ReplyWriterTest, ReadsNothingOfTheConnection) {
  ask("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbody" + get());
  EXPECT_TRUE(answer(text("{}")));
  EXPECT_THAT(received(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(connection_->read_body(), "body");
  EXPECT_EQ(connection_->read_head(10s), HttpConnection::Head::kComplete);
  EXPECT_EQ(connection_->head().target, "/a");
}

TEST_F(ReplyWriterTest, WritesStatusHeadersAndBodyAsTheyAre) {
  ask(get());
  Reply reply = text("{\"a\":1}");
  reply.status = 201;
  reply.headers.emplace_back("Location", "/v1/plans/7");
  EXPECT_TRUE(answer(std::move(reply)));
  const std::string got = received();
  EXPECT_THAT(got, StartsWith("HTTP/1.1 201 Created\r\n"));
  EXPECT_THAT(got, HasSubstr("\r\nLocation: /v1/plans/7\r\n"));
  EXPECT_THAT(got, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(got, HasSubstr("\r\nContent-Length: 7\r\n"));
  EXPECT_THAT(got, EndsWith("\r\n\r\n{\"a\":1}"));
}

TEST_F(ReplyWriterTest, SaysWhetherTheConnectionGoesOn) {
  ask(get());
  EXPECT_TRUE(answer(text("{}")));
  const std::string stays = received();
  EXPECT_THAT(stays, HasSubstr("\r\nKeep-Alive: timeout=60"));
  EXPECT_THAT(stays, Not(HasSubstr("Connection: close")));
  ask(get());
  EXPECT_TRUE(answer(text("{}"), true));
  EXPECT_THAT(received(), HasSubstr("\r\nConnection: close\r\n"));
}

TEST_F(ReplyWriterTest, AnswersAHeadWithoutABody) {
  ask("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer(text("{}")));
  const std::string got = received();
  EXPECT_THAT(got, HasSubstr("\r\nContent-Length: 2\r\n"));
  EXPECT_THAT(got, EndsWith("\r\n\r\n"));
}

TEST_F(ReplyWriterTest, SendsEachPieceOfAStreamAtOnce) {
  ask(get("Accept-Encoding: gzip, br\r\n"));
  Reply reply;
  reply.type = "text/event-stream";
  int calls = 0;
  std::string seen;
  reply.stream = [&](const Sink& sink) {
    seen += received();
    if (++calls == 3) return false;
    return sink("piece " + std::to_string(calls) + "\n");
  };
  EXPECT_TRUE(answer(std::move(reply)));
  EXPECT_EQ(calls, 3);
  EXPECT_THAT(seen, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  EXPECT_THAT(seen, Not(HasSubstr("Content-Encoding")));
  EXPECT_THAT(seen, EndsWith("\r\n\r\n8\r\npiece 1\n\r\n8\r\npiece 2\n\r\n"));
  EXPECT_EQ(received(), "0\r\n\r\n");
}

TEST_F(ReplyWriterTest, EndsAStreamWhoseClientHasGone) {
  ask(get());
  hang_up();
  Reply reply;
  reply.type = "text/event-stream";
  int calls = 0;
  reply.stream = [&](const Sink& sink) { return ++calls < 100 && sink("piece\n"); };
  answer(std::move(reply));
  EXPECT_LT(calls, 10);
  EXPECT_TRUE(connection_->is_broken());
}

TEST_F(ReplyWriterTest, CompressesTextsForWhoTakesThat) {
  const std::string long_text(4096, 'a');
  ask(get("Accept-Encoding: gzip\r\n"));
  EXPECT_TRUE(answer(text(long_text)));
  const std::string small = received();
  EXPECT_THAT(small, HasSubstr("\r\nContent-Encoding: gzip\r\n"));
  EXPECT_LT(small.size(), 1024U);
  ask(get());
  EXPECT_TRUE(answer(text(long_text)));
  EXPECT_THAT(received(), EndsWith("\r\n\r\n" + long_text));
  ask(get("Accept-Encoding: gzip" + std::string(9000, ' ') + "x\r\n"));
  EXPECT_TRUE(answer(text(long_text)));
  EXPECT_THAT(received(), EndsWith("\r\n\r\n" + long_text));
}

TEST_F(ReplyWriterTest, ShowsTheLibraryNothingElseOfARequest) {
  ask(get("Range: bytes=0-0\r\nConnection: close\r\nX-Forwarded-For: 1.2.3.4\r\nExpect: other\r\n"));
  EXPECT_TRUE(answer(text("{}")));
  const std::string got = received();
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(got, EndsWith("\r\n\r\n{}"));
}

TEST_F(ReplyWriterTest, LeavesNoSignalToAProcessWhoseClientHasGone) {
  struct sigaction before {};
  const struct sigaction usual {};  // SIG_DFL
  ASSERT_EQ(::sigaction(SIGPIPE, &usual, &before), 0);
  const ReplyWriter another(10s);
  struct sigaction now {};
  ASSERT_EQ(::sigaction(SIGPIPE, &before, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
}

TEST_F(ReplyWriterTest, AnswersARequestThatWasNeverRead) {
  Reply reply = text("{}");
  reply.status = 431;
  EXPECT_TRUE(answer(std::move(reply), true));
  EXPECT_THAT(received(), StartsWith("HTTP/1.1 431 "));
}

}  // namespace
}  // namespace commtune::api::rest
