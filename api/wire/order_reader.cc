#include "api/wire/order_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

/// A signal that comes right before poll() does not end it.
constexpr int kPollMilliseconds = 200;

}  // namespace

OrderReader::OrderReader(int descriptor, std::function<bool()> stop_requested)
    : descriptor_(descriptor), stop_requested_(std::move(stop_requested)) {}

std::optional<std::string> OrderReader::next() {
  for (;;) {
    if (auto line = take_line()) return line;
    if (ended_) return std::nullopt;
    if (stop_requested_())
      throw Error(ErrorCode::kInterrupted, "interrupted; what was measured until then is kept");
    pollfd waited{descriptor_, POLLIN, 0};
    if (::poll(&waited, 1, kPollMilliseconds) > 0) ended_ = !read_some();
  }
}

bool OrderReader::read_some() {
  std::array<char, 65536> part;
  const ssize_t got = ::read(descriptor_, part.data(), part.size());
  if (got > 0) read_.append(part.data(), static_cast<std::size_t>(got));
  if (got >= 0) return got > 0;
  if (errno == EINTR || errno == EAGAIN) return true;
  throw Error(ErrorCode::kUnavailable, fmt::format("cannot read the order: {}", std::strerror(errno)));
}

std::optional<std::string> OrderReader::take_line() {
  const std::size_t end = read_.find('\n', looked_at_);
  looked_at_ = end == std::string::npos ? read_.size() : 0;
  if (end == std::string::npos && (!ended_ || read_.empty())) return std::nullopt;
  std::string line = read_.substr(0, end);
  read_.erase(0, end == std::string::npos ? end : end + 1);
  looked_at_ = 0;
  return line;
}

}  // namespace commtune::api
