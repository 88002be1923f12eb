#include "perfmodel/simulate/connections.h"

#include <algorithm>
#include <functional>

namespace commtune {

void Connections::reset(const Hosts& hosts, std::size_t messages, double held, double taken) {
  for (const std::uint32_t number : used_) {
    Connection& connection = connections_[number];
    connection.waiting.clear();
    connection.busy = connection.used = false;
  }
  used_.clear();
  hosts_ = hosts.all;
  servers_ = hosts.with_servers;
  peers_ = std::min(hosts.all - 1, hosts.peers);
  // Of its own messages a host with servers sends the answers over all of its connections; of the others',
  // what it pushes over one.
  time_by_occupancy_ = static_cast<double>(servers_) / (1 + servers_among_peers());
  held_ = held;
  taken_ = taken;
  messages_.resize(messages);  // start() fills them in
  if (connections_.size() < hosts_ * peers_) connections_.resize(hosts_ * peers_);
  coming_.clear();
}

/// The part of its peers that have servers, of an average host that has.
double Connections::servers_among_peers() const {
  if (peers_ == 0) return 0;
  if (servers_ == hosts_) return 1;
  if (peers_ + 1 == hosts_) return static_cast<double>(servers_ - 1) / static_cast<double>(peers_);
  std::size_t found = 0;
  for (std::size_t server = 0; server < servers_; ++server) {
    for (std::size_t peer = 0; peer < peers_; ++peer) {
      if (has_servers(peer_of(place_of(server), peer))) ++found;
    }
  }
  return static_cast<double>(found) / static_cast<double>(servers_ * peers_);
}

/// Peers are the hosts that follow a host, or half of them those and half the ones before.
std::size_t Connections::peer_of(std::size_t host, std::size_t peer) const {
  const bool before = peers_ + 1 < hosts_ && peer >= peers_ / 2;
  const std::size_t away = before ? hosts_ - (peer - peers_ / 2 + 1) : peer + 1;
  return host + away < hosts_ ? host + away : host + away - hosts_;
}

std::uint32_t Connections::connection_from(std::size_t host, std::size_t peer) const {
  return static_cast<std::uint32_t>(host * peers_ + peer);
}

/// From its peer.
std::uint32_t Connections::connection_to(std::size_t host, std::size_t peer) const {
  const std::size_t back = peers_ + 1 == hosts_ ? peers_ - 1 - peer : (peer + peers_ / 2) % peers_;
  return connection_from(peer_of(host, peer), back);
}

void Connections::start(std::uint32_t message, std::uint32_t server, const TransferCost& cost, double now) {
  const auto host = static_cast<std::uint32_t>(place_of(server));
  Message& starting = messages_[message];
  starting = {cost, host};
  starting.stages[0].from = starting.stages[1].from = kNever;
  if (peers_ == 0) return coming_.push({now + 2 * (cost.time + cost.lag), message, kMayAnswer});
  if (cost.before > 0) return coming_.push({now + cost.before, message_event(message), kMayPush});
  push(message, now);
}

void Connections::push(std::uint32_t number, double now) {
  const Message& message = messages_[number];
  const Transfer transfer{number, false, false, taken_ == kNever, message.cost.time};
  for (std::size_t peer = 0; peer < peers_; ++peer) offer(connection_to(message.host, peer), transfer, now);
}

/// The connection has one more transfer to send.
void Connections::offer(std::uint32_t number, Transfer transfer, double now) {
  Connection& connection = connections_[number];
  if (!connection.used) used_.push_back(number);
  connection.used = true;
  if (!connection.busy) {
    connection.busy = true;
    connection.sending = transfer;
    connection.until = kNever;
    return go_on(number, now);
  }
  const bool overtakes = transfer.message < connection.sending.message;
  const bool fits = !transfer.taken && transfer.left <= taken_;
  if (fits && (overtakes || has_room(connection, transfer, now))) {
    transfer.taken = true;
    coming_.push({now, message_event(transfer.message), kTaken});
  }
  wait(connection, transfer);
  if (!overtakes || connection.until < kNever) return;
  connection.until = now + held_;
  connection.sending.left -= now - connection.since;
  go_on(number, now);
}

/// Whether its sockets take all of a transfer beside what they hold.
bool Connections::has_room(const Connection& connection, const Transfer& transfer, double now) const {
  if (!connection.waiting.empty()) return false;
  return connection.sending.left - (now - connection.since) + transfer.left <= taken_;
}

void Connections::wait(Connection& connection, const Transfer& transfer) {
  const auto place =
      std::ranges::upper_bound(connection.waiting, transfer.message, std::greater{}, &Transfer::message);
  connection.waiting.insert(place, transfer);
}

/// Sends the transfer at hand up to the next moment at which something changes.
void Connections::go_on(std::uint32_t number, double now) {
  Connection& connection = connections_[number];
  Transfer& transfer = connection.sending;
  if (!transfer.begun) begin(transfer, now);
  connection.since = now;
  double next = std::min(connection.until, now + transfer.left);
  if (!transfer.taken) next = std::min(next, now + std::max(0.0, transfer.left - taken_));
  coming_.push({next, number, ++connection.stamp});
}

void Connections::begin(Transfer& transfer, double now) {
  transfer.begun = true;
  Message& message = messages_[transfer.message];
  StageInterval& stage = message.stages[transfer.answers ? 1 : 0];
  stage.from = std::min(stage.from, now);
  if (transfer.answers || ++message.begun < peers_) return;
  const double answered = now + message.cost.chunk + message.cost.lag;
  coming_.push({answered, message_event(transfer.message), kMayAnswer});
}

Connections::Event Connections::handle() {
  const EventHeap::Event coming = coming_.take();
  if (const std::uint32_t first = message_event(0); coming.whose >= first) {
    const std::uint32_t message = coming.whose - first;
    if (coming.stamp == kMayAnswer) return let_answer(message, coming.at);
    if (coming.stamp == kMayPush) {
      push(message, coming.at);
      return {};
    }
    return {++messages_[message].taken == half(), false, message};
  }
  if (connections_[coming.whose].stamp != coming.stamp) return {};
  return pass(coming.whose, coming.at);
}

Connections::Event Connections::let_answer(std::uint32_t number, double now) {
  Message& message = messages_[number];
  if (peers_ == 0) {
    message.stages.fill({now, now});
    return {true, true, number};
  }
  const Transfer transfer{number, true, false, true, message.cost.time};
  for (std::uint32_t peer = 0; peer < peers_; ++peer)
    offer(connection_from(message.host, peer), transfer, now);
  return {};
}

/// What a connection sends has come to where something changes.
Connections::Event Connections::pass(std::uint32_t number, double now) {
  Connection& connection = connections_[number];
  Transfer& transfer = connection.sending;
  Event event{false, false, transfer.message};
  if (!transfer.taken && now >= connection.since + std::max(0.0, transfer.left - taken_)) {
    transfer.taken = true;
    event.sent = ++messages_[transfer.message].taken == half();
  }
  if (now >= connection.since + transfer.left) {
    event.arrived = ends(transfer, now);
    send_next(number, now);
    return event;
  }
  transfer.left -= now - connection.since;
  if (now < connection.until) {
    go_on(number, now);
  } else {
    wait(connection, Transfer(transfer));
    send_next(number, now);
  }
  return event;
}

/// A transfer has been sent. Whether it was the message's last one.
bool Connections::ends(const Transfer& transfer, double now) {
  Message& message = messages_[transfer.message];
  const TransferCost& cost = message.cost;
  auto& [reduce, distribute] = message.stages;
  if (transfer.answers) {
    ++message.answered;
    distribute.end = std::max(distribute.end, now + cost.lag);
  } else {
    ++message.pushed;
    reduce.end = now + cost.lag;
    distribute.end = std::max(distribute.end, reduce.end + cost.chunk + cost.lag);
  }
  return message.pushed == peers_ && message.answered == peers_;
}

/// The most urgent of what waits.
void Connections::send_next(std::uint32_t number, double now) {
  Connection& connection = connections_[number];
  connection.busy = !connection.waiting.empty();
  if (!connection.busy) return;
  connection.sending = connection.waiting.back();
  connection.waiting.pop_back();
  connection.until = kNever;
  go_on(number, now);
}

}  // namespace commtune
