#include "executor/transport/tcp/caller.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::tcp {
namespace {

// A rank is refused when strangers have crowded it out. They are many, it is one: it need not hurry.
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

Caller::Caller(const Peers& peers, const Introduction& known, Places& places)
    : peers_(peers), known_(known), places_(places) {
  for (int peer = 0; peer < peers.rank; ++peer) {
    calls_.push_back({peer, way_to(peer), ConnectingSide(known.secret, peers.rank, peer)});
    dial(calls_.back());
  }
}

Way Caller::way_to(int peer) const {
  const auto own = static_cast<std::size_t>(peers_.rank), other = static_cast<std::size_t>(peer);
  if (peers_.node[own] == peers_.node[other]) {
    return {kLoopback, {kLoopback, known_.cards[other].loopback_port}};
  }
  return way_between(known_.cards[own], known_.cards[other]).value();
}

std::string Caller::where(const Call& call) const {
  return fmt::format("connecting to {} at {}", describe(peers_, call.peer), to_text(call.way.to));
}

std::string Caller::state_of(int rank) const {
  const Call& call = calls_[static_cast<std::size_t>(rank)];
  if (call.refusals == 0) return where(call);
  return fmt::format("{} from {}, refused {} times, at last because {}", where(call), to_text(call.way.from),
                     call.refusals, call.why);
}

void Caller::watch(std::vector<pollfd>& polled) const {
  for (const Call& call : calls_) {
    const bool connects = call.state == State::kConnecting;
    // poll() passes over negative descriptors.
    polled.push_back({call.socket.get(), static_cast<short>(connects ? POLLOUT : POLLIN), 0});
  }
}

void Caller::go_on(std::span<const pollfd> ready) {
  const Deadline now = Clock::now();
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    Call& call = calls_[i];
    if (call.state == State::kPausing && call.next_try <= now) dial(call);
    if (ready[i].fd < 0 || ready[i].revents == 0) continue;
    if (call.state == State::kConnecting) {
      introduce_itself(call);
    } else if (call.state == State::kProving) {
      hear(call);
    }
  }
}

std::optional<Deadline> Caller::next_try() const {
  std::optional<Deadline> next;
  for (const Call& call : calls_) {
    if (call.state == State::kPausing && (!next || call.next_try < *next)) next = call.next_try;
  }
  return next;
}

void Caller::dial(Call& call) {
  call.side = ConnectingSide(known_.secret, peers_.rank, call.peer);
  call.inbox = {};
  call.socket = begin_connecting(call.way.from, call.way.to);
  call.state = State::kConnecting;
}

void Caller::introduce_itself(Call& call) {
  if (const int error = connecting_error(call.socket.get()); error != 0) {
    throw Error(ErrorCode::kPeerLost, fmt::format("{}: {}", where(call), std::strerror(error)));
  }
  if (!send_whole(call.socket.get(), call.side.opening())) return try_later(call, "it takes no greeting");
  call.state = State::kProving;
}

void Caller::hear(Call& call) {
  switch (call.inbox.read(call.socket.get(), call.side.awaited())) {
    case Inbox::State::kWaiting:
      return;
    case Inbox::State::kClosed:
      return try_later(call, "it closed the connection");
    case Inbox::State::kComplete:
      return take_message(call);
  }
}

void Caller::take_message(Call& call) {
  const Step step = call.side.take(call.inbox.take());
  if (step == Step::kRefused) return try_later(call, call.side.why());
  if (step == Step::kReply) {
    if (!send_whole(call.socket.get(), call.side.reply())) try_later(call, "it takes no proof");
    return;
  }
  call.state = State::kConnected;
  places_.give(call.peer, std::move(call.socket));
}

void Caller::try_later(Call& call, std::string_view why) {
  call.socket = Descriptor();
  call.state = State::kPausing;
  call.next_try = Clock::now() + kPause;
  call.why = why;
  ++call.refusals;
}

}  // namespace commtune::tcp
