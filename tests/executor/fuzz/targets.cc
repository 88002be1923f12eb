#include "tests/executor/fuzz/targets.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include "executor/transport/matching/transfers.h"
#include "executor/transport/tcp/handshake.h"
#include "executor/transport/tcp/peer_connection.h"
#include "perfmodel/base/error.h"
#include "tests/fuzz/require.h"

namespace commtune::fuzz {
namespace {

using View = std::span<const std::byte>;

View bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Says the bytes to one side, message by message.
template <typename End>
void say(End end, View bytes) {
  while (bytes.size() >= end.awaited()) {
    const std::size_t length = end.awaited();
    const tcp::Step step = end.take(bytes.first(length));
    bytes = bytes.subspan(length);
    require(step != tcp::Step::kProven, "nobody proves to know what he cannot know");
    if (step == tcp::Step::kRefused) return require(!end.why().empty(), "a refusal says why");
    require(!end.reply().empty() && end.reply().size() <= sizeof(tcp::Proof), "an answer is short");
  }
}

/// One end of a pair of sockets, with a few receives, to whose other end anything is sent.
class Listening {
 public:
  Listening() {
    std::array<int, 2> ends{};
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0, "sockets");
    other_ = Descriptor(ends[1]);
    connection_.emplace(Descriptor(ends[0]), transfers_, peers_, limits_, 1);
  }

  void send(View bytes) {
    require(::send(other_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes), "room");
    hear(EPOLLIN);
  }
  void hang_up() {
    other_ = Descriptor();
    hear(EPOLLIN | EPOLLRDHUP);
  }
  void receive(Tag tag, std::size_t room) {
    std::vector<std::byte>& memory = memory_.emplace_back(room);
    const TransferId id = transfers_.open(memory.data(), memory.size(), tag);
    connection_->receive(id);
  }

 private:
  void hear(std::uint32_t events) {
    connection_->on_events(events);
    while (connection_->readable()) connection_->drain(ahead_);
    for (const Completion& completion : transfers_.report()) {
      require(completion.bytes <= limits_.longest.count, "a message is no longer than the limit");
    }
    transfers_.release_reported();
  }

  const Peers peers_{0, {"here", "there"}, {0, 1}};
  const MessageLimits limits_{.longest = {256}, .early = {1024}};
  matching::Transfers transfers_;
  std::list<std::vector<std::byte>> memory_;  // of receives, each its own, so that a sanitizer sees its end
  std::vector<std::byte> ahead_ = std::vector<std::byte>(40);
  Descriptor other_;
  std::optional<tcp::PeerConnection> connection_;
};

void converse(View bytes) {
  Listening listening;
  listening.receive(make_tag(TagSpace::kReduce, 1), 16);
  listening.receive(make_tag(TagSpace::kControl, kAnyNumber), 64);
  listening.send(bytes.first(bytes.size() / 2));
  listening.receive(make_tag(TagSpace::kReduce, 2), 300);  // may have come already
  listening.receive(make_tag(TagSpace::kDistribute, kAnyNumber), 0);
  listening.send(bytes.subspan(bytes.size() / 2));
  listening.hang_up();
}

}  // namespace

void handshake(std::string_view text) {
  say(tcp::AcceptingSide(tcp::make_secret(), 1, 4), bytes_of(text));
  say(tcp::ConnectingSide(tcp::make_secret(), 1, 0), bytes_of(text));
}

void connection(std::string_view text) {
  try {
    converse(bytes_of(text));
  } catch (const Error& error) {
    const bool known = error.code() == ErrorCode::kConflict || error.code() == ErrorCode::kPeerLost;
    require(known, "a refusal has the right code");
    require(std::string_view(error.what()).find("rank 1 (host there)") != std::string_view::npos,
            "a refusal names the peer");
  }
}

}  // namespace commtune::fuzz
