#include "executor/transport/tcp/acceptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace commtune::tcp {
namespace {

// So many are accepted before those that are there already have a turn.
constexpr int kAcceptedAtOnce = 64;

bool on_one_host(const Peers& peers, int a, int b) {
  return peers.node[static_cast<std::size_t>(a)] == peers.node[static_cast<std::size_t>(b)];
}

}  // namespace

std::vector<Listener> open_listeners(const Peers& peers, AddressCard& mine) {
  bool from_here = false, from_others = false;
  for (int rank = peers.rank + 1; rank < peers.size(); ++rank) {
    (on_one_host(peers, rank, peers.rank) ? from_here : from_others) = true;
  }
  std::vector<Listener> listeners;
  const auto open = [&](const IpAddress& ip, std::uint32_t& port, bool loopback) {
    auto [socket, picked] = listen_at(ip);
    port = picked;
    listeners.push_back({std::move(socket), loopback});
  };
  if (from_here) open(kLoopback, mine.loopback_port, true);
  if (!from_others) return listeners;
  for (Address& address : mine.all()) open(address.ip, address.port, false);
  return listeners;
}

Acceptor::Acceptor(const Peers& peers, const Introduction& known, const std::vector<Listener>& listeners,
                   Places& places)
    : peers_(peers), known_(known), listeners_(listeners), places_(places) {}

void Acceptor::watch(std::vector<pollfd>& polled) const {
  for (const Stranger& stranger : pending_) polled.push_back({stranger.socket.get(), POLLIN, 0});
  for (const Listener& listener : listeners_) polled.push_back({listener.socket.get(), POLLIN, 0});
}

void Acceptor::go_on(std::span<const pollfd> ready) {
  // First who is there already: new ones may take the place of the oldest.
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (ready[i].revents != 0) hear(pending_[i]);
  }
  const Deadline now = Clock::now();
  for (Stranger& stranger : pending_) {
    if (!stranger.gone && stranger.until <= now) refuse(stranger, "it did not prove itself in time");
  }
  ready = ready.subspan(pending_.size());
  std::erase_if(pending_, [](const Stranger& stranger) { return stranger.gone; });
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (ready[i].revents != 0) accept(listeners_[i]);
  }
}

std::optional<Deadline> Acceptor::next_limit() const {
  if (pending_.empty()) return std::nullopt;
  return pending_.front().until;
}

std::string Acceptor::refused() const {
  if (refusals_ == 0) return {};
  return fmt::format("{} connection{} refused, the last one {}", refusals_,
                     refusals_ == 1 ? " was" : "s were", last_refusal_);
}

void Acceptor::accept(const Listener& listener) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    auto accepted = accept_from(listener.socket.get());
    if (!accepted) return;
    auto& [socket, ip] = *accepted;
    if (!may_be_a_rank(listener, ip)) {
      note_refusal(ip, "no rank has that address on its card");
      continue;
    }
    if (pending_.size() >= peers_.hosts.size() + kMostStrangers) {
      refuse(pending_.front(), "too many others came after it");
      pending_.erase(pending_.begin());
    }
    pending_.push_back({std::move(socket), ip, listener.loopback, Clock::now() + kProofLimit,
                        AcceptingSide(known_.secret, peers_.rank, peers_.size())});
  }
}

bool Acceptor::may_be_a_rank(const Listener& listener, const IpAddress& ip) const {
  if (listener.loopback) return ip == kLoopback;
  return std::ranges::any_of(known_.cards, [&](const AddressCard& card) { return card.lists(ip); });
}

bool Acceptor::comes_from(const Stranger& stranger, int rank) const {
  if (on_one_host(peers_, rank, peers_.rank)) return stranger.loopback;
  return !stranger.loopback && known_.cards[static_cast<std::size_t>(rank)].lists(stranger.ip);
}

void Acceptor::hear(Stranger& stranger) {
  switch (stranger.inbox.read(stranger.socket.get(), stranger.side.awaited())) {
    case Inbox::State::kWaiting:
      return;
    case Inbox::State::kClosed:
      return refuse(stranger, "it closed the connection before it had proven itself");
    case Inbox::State::kComplete:
      return take_message(stranger);
  }
}

void Acceptor::take_message(Stranger& stranger) {
  const Step step = stranger.side.take(stranger.inbox.take());
  if (step == Step::kRefused) return refuse(stranger, stranger.side.why());
  const int rank = stranger.side.peer();
  if (!comes_from(stranger, rank)) return refuse(stranger, "its address is not on the card of its rank");
  if (places_.is_taken(rank)) return refuse(stranger, "its rank is connected already");
  if (!send_whole(stranger.socket.get(), stranger.side.reply()))
    return refuse(stranger, "it takes no answer");
  if (step == Step::kReply) return;
  places_.give(rank, std::move(stranger.socket));
  stranger.gone = true;
}

void Acceptor::refuse(Stranger& stranger, std::string_view why) {
  note_refusal(stranger.ip, why);
  stranger.gone = true;
}

void Acceptor::note_refusal(const IpAddress& ip, std::string_view why) {
  ++refusals_;
  last_refusal_ = fmt::format("from {}: {}", to_text(ip), why);
}

}  // namespace commtune::tcp
