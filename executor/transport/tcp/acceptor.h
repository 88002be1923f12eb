#pragma once
// The listening end of a mesh: takes connections, and lets none in that does not prove to be a rank of the
// run whose place is free. Anybody may open connections; no number of them delays the ranks by more than the
// time that it takes to look at each. All are watched at once, each has a short time to prove itself, and
// when there are too many the one that has been idle for longest goes: a rank that it hits tries again.

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/transport/tcp/address_card.h"
#include "executor/transport/tcp/handshake.h"
#include "executor/transport/tcp/introduction.h"
#include "executor/transport/tcp/places.h"
#include "executor/transport/tcp/sockets.h"
#include "executor/transport/transport.h"

namespace commtune::tcp {

struct Listener {
  Descriptor socket;
  bool loopback = false;  ///< for ranks of this host, which come from 127.0.0.1
};

/// Listens where higher ranks will come from and nowhere else, and enters the ports on this rank's card.
/// throws  Error{kUnavailable}
std::vector<Listener> open_listeners(const Peers& peers, AddressCard& mine);

class Acceptor {
 public:
  /// Beyond the ranks: connections that have not proven themselves yet.
  static constexpr std::size_t kMostStrangers = 64;
  /// For each of them, from its arrival.
  static constexpr std::chrono::seconds kProofLimit{2};

  /// All must outlive the acceptor.
  Acceptor(const Peers& peers, const Introduction& known, const std::vector<Listener>& listeners,
           Places& places);

  /// Appends what poll() is to look at.
  void watch(std::vector<pollfd>& polled) const;
  /// Moves on what can move.
  /// ready  what watch() appended last, after poll()
  void go_on(std::span<const pollfd> ready);
  /// When the next one's time is over.
  std::optional<Deadline> next_limit() const;

  std::size_t pending() const { return pending_.size(); }
  /// "4 connections were refused, the last one from 10.0.0.9: ..."; empty if none was.
  std::string refused() const;

 private:
  /// One that has not proven itself.
  struct Stranger {
    Descriptor socket;
    IpAddress ip;
    bool loopback = false;
    Deadline until;
    AcceptingSide side;
    Inbox inbox{};
    bool gone = false;  // refused, or in its place
  };
  void accept(const Listener& listener);
  bool may_be_a_rank(const Listener& listener, const IpAddress& ip) const;
  bool comes_from(const Stranger& stranger, int rank) const;
  void hear(Stranger& stranger);
  void take_message(Stranger& stranger);
  void refuse(Stranger& stranger, std::string_view why);
  void note_refusal(const IpAddress& ip, std::string_view why);

  const Peers& peers_;
  const Introduction& known_;
  const std::vector<Listener>& listeners_;
  Places& places_;
  std::vector<Stranger> pending_;  // the oldest first
  std::size_t refusals_ = 0;
  std::string last_refusal_;
};

}  // namespace commtune::tcp
