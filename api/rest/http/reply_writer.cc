#include "api/rest/http/reply_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

// clang-format off
#include <httplib.h>
// clang-format on

namespace commtune::api::rest {
namespace {

constexpr std::size_t kLongestEncoding = 1024;  // of an Accept-Encoding; browsers send 30 letters

/// What the library reads from, a head that we wrote, and writes to, the connection.
class LibraryStream : public httplib::Stream {
 public:
  LibraryStream(HttpConnection& connection, std::string head)
      : connection_(connection), head_(std::move(head)) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !connection_.is_broken(); }
  ssize_t read(char* out, std::size_t size) override {
    size = std::min(size, head_.size() - at_);
    std::memcpy(out, head_.data() + at_, size);
    at_ += size;
    return static_cast<ssize_t>(size);
  }
  ssize_t write(const char* data, std::size_t size) override {
    return connection_.write({data, size}) ? static_cast<ssize_t>(size) : -1;
  }
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return 0; }  // hook 6

 private:
  HttpConnection& connection_;
  const std::string head_;
  std::size_t at_ = 0;
};

/// Hook 3.
struct Carrier {
  Reply* reply;
  bool operator()(std::uint64_t /*current*/, std::uint64_t /*total*/) const { return true; }
};

/// Hook 7. Streams are not compressed: each piece has to be seen at once.
std::string head_for(const RequestHead& request, const Reply& reply) {
  std::string head = request.method == "HEAD" ? "HEAD / HTTP/1.1\r\n" : "GET / HTTP/1.1\r\n";
  const std::string_view encoding = request.field("Accept-Encoding");
  if (!reply.stream && !encoding.empty() && encoding.size() <= kLongestEncoding)
    head += fmt::format("Accept-Encoding: {}\r\n", encoding);
  return head + "\r\n";
}

/// Hook 4.
void give(Reply reply, httplib::Response& response) {
  response.status = reply.status;
  for (auto& [name, value] : reply.headers) response.headers.emplace(std::move(name), std::move(value));
  if (!reply.stream) {
    response.body = std::move(reply.body);
    if (!reply.type.empty()) response.headers.emplace("Content-Type", std::move(reply.type));
    return;
  }
  response.set_chunked_content_provider(
      reply.type, [stream = std::move(reply.stream)](std::size_t, httplib::DataSink& sink) {
        const bool more =
            stream([&sink](std::string_view piece) { return sink.write(piece.data(), piece.size()); });
        if (!more) sink.done();
        return true;
      });
}

}  // namespace

class ReplyWriter::Library : public httplib::Server {
 public:
  explicit Library(std::chrono::milliseconds idle_time) {
    svr_sock_ = 0;  // hook 5
    set_keep_alive_timeout(std::chrono::ceil<std::chrono::seconds>(idle_time).count());
    set_keep_alive_max_count(1'000'000);
    set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {  // hook 2
      give(std::move(*request.progress.target<Carrier>()->reply), response);
      return HandlerResponse::Handled;
    });
  }

  bool answer(httplib::Stream& stream, Reply& reply, bool closes) {
    bool closed = false;
    return process_request(stream, closes, closed,  // hook 1
                           [&reply](httplib::Request& request) { request.progress = Carrier{&reply}; });
  }
};

ReplyWriter::ReplyWriter(std::chrono::milliseconds idle_time)
    : library_(std::make_unique<Library>(idle_time)) {}

ReplyWriter::~ReplyWriter() = default;

bool ReplyWriter::write(HttpConnection& connection, Reply reply, bool closes) {
  if (reply.stream) connection.begin_stream();
  LibraryStream stream(connection, head_for(connection.head(), reply));
  return library_->answer(stream, reply, closes);
}

}  // namespace commtune::api::rest
