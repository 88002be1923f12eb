// One reading of each head, and none of those in which two servers could read two things.

#include "api/rest/http/request_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/perfmodel/throws.h"

namespace commtune::api::rest {
namespace {

using testing::HasSubstr;

/// With the lines given in place of the headers.
std::string get(const std::string& lines) { return "GET /a?b=1 HTTP/1.1\r\n" + lines + "\r\n"; }
std::string post(const std::string& lines) { return "POST /a HTTP/1.1\r\nHost: x\r\n" + lines + "\r\n"; }

std::string refusal(const std::string& head) {
  return bad_input([&] { read_request_head(head); });
}

TEST(RequestHead, IsReadAsItWasSent) {
  const RequestHead head =
      read_request_head(get("Host: x\r\nX-Name:\t a b \r\nConnection: Foo, CLOSE\r\nEmpty:\r\n"));
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.target, "/a?b=1");
  EXPECT_EQ(head.field("x-name"), "a b");
  EXPECT_EQ(head.field("HOST"), "x");
  EXPECT_EQ(head.field("empty"), "");
  EXPECT_EQ(head.field("absent"), "");
  EXPECT_EQ(head.content_length, 0U);
  EXPECT_TRUE(head.closes);
  EXPECT_FALSE(head.coded);
}

TEST(RequestHead, SaysWhereTheBodyEnds) {
  EXPECT_EQ(read_request_head(post("content-LENGTH: 12\r\n")).content_length, 12U);
  EXPECT_TRUE(read_request_head(post("Transfer-Encoding: chunked\r\n")).coded);
  EXPECT_TRUE(read_request_head(post("Expect: 100-Continue\r\nContent-Length: 1\r\n")).expects_continue);
}

TEST(RequestHead, OfAnOldClientEndsTheConnectionUnlessItSaysOtherwise) {
  EXPECT_TRUE(read_request_head("GET / HTTP/1.0\r\n\r\n").closes);
  EXPECT_FALSE(read_request_head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").closes);
  EXPECT_FALSE(read_request_head(get("Host: x\r\n")).closes);
}

TEST(HostileHead, TwoLengths) {
  EXPECT_THAT(refusal(post("Content-Length: 1\r\nContent-Length: 2\r\n")),
              HasSubstr("content-length: came twice"));
  EXPECT_THAT(refusal(post("Content-Length: 1\r\ncontent-length: 1\r\n")), HasSubstr("came twice"));
  EXPECT_THAT(refusal(post("Content-Length: 1, 1\r\n")), HasSubstr("must be one whole number"));
}

TEST(HostileHead, LengthWithChunked) {
  for (const char* lines : {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
                            "Transfer-Encoding: identity\r\nContent-Length: 1\r\n",
                            "Transfer-Encoding:\r\nContent-Length: 1\r\n"})
    EXPECT_THAT(refusal(post(lines)), HasSubstr("only one of them"));
  EXPECT_THAT(refusal(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n")),
              HasSubstr("came twice"));
  EXPECT_THAT(refusal("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), HasSubstr("HTTP/1.0"));
}

TEST(HostileHead, LengthThatIsNoNumber) {
  for (const char* length : {"-1", "+1", "0x10", "1 2", "1e3", "", "18446744073709551616", "1.0", "one"})
    EXPECT_THAT(refusal(post("Content-Length: " + std::string(length) + "\r\n")),
                HasSubstr("one whole number"));
}

TEST(HostileHead, BareLineFeed) {
  EXPECT_THAT(refusal("GET / HTTP/1.1\nHost: x\r\n\r\n"), HasSubstr("CR LF"));
  EXPECT_THAT(refusal(post("X: 1\nContent-Length: 5\r\n")), HasSubstr("CR LF"));
  EXPECT_FALSE(may_begin_head("GET / HTTP/1.1\n", '\0'));
  EXPECT_FALSE(may_begin_head("\nX: 1", 'x'));
  EXPECT_TRUE(may_begin_head("\nX: 1", '\r'));
}

TEST(HostileHead, BareCarriageReturn) {
  EXPECT_THAT(refusal(post("X: 1\rContent-Length: 5\r\n")), HasSubstr("CR"));
  EXPECT_THAT(refusal(post("X: 1\r\r\n")), HasSubstr("CR"));
}

TEST(HostileHead, FoldedLine) {
  EXPECT_THAT(refusal(post("X: 1\r\n Content-Length: 5\r\n")), HasSubstr("folded"));
  EXPECT_THAT(refusal(post("\tX: 1\r\n")), HasSubstr("folded"));
}

TEST(HostileHead, BlankBeforeTheColon) {
  for (const char* line : {"Content-Length : 5\r\n", "Content-Length\t: 5\r\n", ": 5\r\n", "X Y: 5\r\n"})
    EXPECT_THAT(refusal(post(line)), HasSubstr("right after it"));
  EXPECT_THAT(refusal(post("Content-Length\r\n")), HasSubstr("no colon"));
}

TEST(HostileHead, Nul) {
  const auto with_nul = [](std::string text, char in_place_of) {
    text.at(text.find(in_place_of)) = '\0';
    return text;
  };
  EXPECT_THAT(refusal(with_nul(post("X: 1#\r\n"), '#')), HasSubstr("control character"));
  EXPECT_THAT(refusal(with_nul(post("X#: 1\r\n"), '#')), HasSubstr("a word"));
  EXPECT_THAT(refusal(with_nul("GET /# HTTP/1.1\r\nHost: x\r\n\r\n", '#')), HasSubstr("escaped"));
  EXPECT_FALSE(may_begin_head(with_nul("GET /#", '#'), '\0'));
}

TEST(HostileHead, TwoMeaningsOfAField) {
  for (const char* name : {"Host", "Authorization", "Origin", "Content-Type", "Idempotency-Key"}) {
    const std::string line = std::string(name) + ": x\r\n";
    EXPECT_THAT(refusal(get("Host: x\r\n" + line + (name == std::string("Host") ? "" : line))),
                HasSubstr("came twice"));
  }
}

TEST(HostileHead, NoHost) { EXPECT_THAT(refusal(get("")), HasSubstr("Host: is missing")); }

TEST(HostileHead, RequestLineOfOtherThanThreeWords) {
  for (const char* line :
       {"", "GET", "GET /", "GET  HTTP/1.1", "GET /a b HTTP/1.1", "GET / HTTP/1.1 ", " GET / HTTP/1.1",
        "GET\t/ HTTP/1.1", "G(T / HTTP/1.1", "GET / HTTP/2.0", "GET / HTTP/1.1x", "GET /\x7f HTTP/1.1"})
    refusal(std::string(line) + "\r\nHost: x\r\n\r\n");
}

TEST(HostileHead, WhatFollowsTheHead) {
  EXPECT_THAT(refusal(get("Host: x\r\n") + "GET /b HTTP/1.1\r\n\r\n"), HasSubstr("empty line"));
  EXPECT_THAT(refusal("GET / HTTP/1.1\r\nHost: x\r\n"), HasSubstr("CR LF"));
}

}  // namespace
}  // namespace commtune::api::rest
