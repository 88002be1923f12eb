#pragma once
// The connecting end of a mesh: connects to all lower ranks at once, and proves itself to each.

#include <poll.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/transport/tcp/address_card.h"
#include "executor/transport/tcp/handshake.h"
#include "executor/transport/tcp/introduction.h"
#include "executor/transport/tcp/places.h"
#include "executor/transport/tcp/sockets.h"
#include "executor/transport/transport.h"

namespace commtune::tcp {

class Caller {
 public:
  /// Begins to connect. All must outlive the caller.
  /// known   every card of a rank on another host must list an address
  /// throws  Error{kPeerLost}
  Caller(const Peers& peers, const Introduction& known, Places& places);

  /// Appends what poll() is to look at.
  void watch(std::vector<pollfd>& polled) const;
  /// Moves on what can move. Throws Error{kPeerLost} naming a rank that cannot be reached.
  /// ready  what watch() appended last, after poll()
  void go_on(std::span<const pollfd> ready);
  /// When the next try is due.
  std::optional<Deadline> next_try() const;

  /// "connecting to rank 0 (host a) at 10.0.0.1:4711", and why the last try failed, if one has.
  std::string state_of(int rank) const;

 private:
  enum class State { kPausing, kConnecting, kProving, kConnected };
  struct Call {
    int peer = 0;
    Way way;
    ConnectingSide side;
    State state = State::kPausing;
    Descriptor socket{};
    Inbox inbox{};
    Deadline next_try{};
    int refusals = 0;
    std::string why{};  // of the last one
  };
  Way way_to(int peer) const;
  std::string where(const Call& call) const;
  void dial(Call& call);
  void introduce_itself(Call& call);
  void hear(Call& call);
  void take_message(Call& call);
  void try_later(Call& call, std::string_view why);

  const Peers& peers_;
  const Introduction& known_;
  Places& places_;
  std::vector<Call> calls_;  // by rank
};

}  // namespace commtune::tcp
