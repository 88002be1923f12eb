#pragma once
// The one place that leans on cpp-httplib: it writes our answers (status line, headers, chunks, compression).
// Requests are read by us (request_head.h). The library is not shown a byte of what a client sent, except for
// the text of Accept-Encoding: it gets a head of our own making, which asks for what is to be written.
//
// The hooks, of which tests/api/rest/http/reply_writer_test.cc tries all but 6, a comparison that no answer
// shows. CMakeLists.txt beside this names the versions that have them all; another one has to pass that test
// before it is let in.
//  1. Server::process_request (protected) reads one head from a Stream, and no byte more where that is a GET
//     or HEAD; calls `setup_request`; routes; writes the answer to the Stream. With `close_connection` the
//     answer says "Connection: close".
//  2. A pre-routing handler that returns Handled is all of its routing.
//  3. Request::progress, a std::function that a server does not call, reaches that handler as `setup_request`
//     left it: it carries our answer there.
//  4. Response: status, headers and body are written as they are; set_chunked_content_provider writes each
//     piece at once, by a write() of its own.
//  5. svr_sock_ (protected) must not be INVALID_SOCKET: chunked answers would end before they begin.
//  6. Stream::socket() is only compared with FD_SETSIZE.
//  7. Of the head it looks at the method (the answer to a HEAD has no body) and at Accept-Encoding (texts and
//     JSON are compressed, by brotli or gzip).
//  8. Making a Server ignores SIGPIPE for the process.

#include <chrono>
#include <memory>

#include "api/rest/http/http_connection.h"
#include "api/rest/http/message.h"

namespace commtune::api::rest {

class ReplyWriter {
 public:
  /// idle_time  said to clients that keep their connection
  explicit ReplyWriter(std::chrono::milliseconds idle_time);
  ~ReplyWriter();
  ReplyWriter(const ReplyWriter&) = delete;
  ReplyWriter& operator=(const ReplyWriter&) = delete;

  /// Answers the request whose head the connection has read last. From any thread. What has no stream still
  /// has to be flushed. False when it could not be written.
  ///
  /// closes  the answer says that the connection ends after it
  bool write(HttpConnection& connection, Reply reply, bool closes);

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace commtune::api::rest
