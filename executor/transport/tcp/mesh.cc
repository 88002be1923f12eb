#include "executor/transport/tcp/mesh.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "executor/transport/tcp/caller.h"
#include "executor/transport/tcp/places.h"
#include "executor/transport/tcp/send_pace.h"
#include "perfmodel/base/error.h"

namespace commtune::tcp {
namespace {

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<decltype(left)>(left, 0));
}

void wait_for_any(std::vector<pollfd>& polled, Deadline until) {
  if (poll(polled.data(), polled.size(), milliseconds_until(until)) >= 0 || errno == EINTR) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("waiting for a connection: {}", std::strerror(errno)));
}

Error late(const Peers& peers, int absent, const Acceptor& acceptor, const Caller& caller) {
  if (absent < peers.rank) return {ErrorCode::kTimeout, caller.state_of(absent) + ": timed out"};
  std::string text = fmt::format("waiting for {} to connect: timed out", describe(peers, absent));
  if (const std::string refused = acceptor.refused(); !refused.empty()) text += "; " + refused;
  return {ErrorCode::kTimeout, text};
}

bool spans_hosts(const Peers& peers) {
  return std::ranges::any_of(peers.node, [&](int node) { return node != peers.node.front(); });
}

/// On every rank, so that all end with the same error: a rank that is only connected to would wait in vain.
void require_addresses(const Peers& peers, const std::vector<AddressCard>& cards,
                       const std::string& network) {
  if (!spans_hosts(peers)) return;
  const auto without = std::ranges::find(cards, 0U, &AddressCard::count);
  if (without == cards.end()) return;
  const std::string who = describe(peers, static_cast<int>(without - cards.begin()));
  throw Error(ErrorCode::kUnavailable,
              network.empty() ? fmt::format("{} has no network address but the loopback one", who)
                              : fmt::format("{} has no address in the subnet {} that ranks were told to use",
                                            who, network));
}

}  // namespace

std::vector<Descriptor> meet(const Peers& peers, const Introduction& known,
                             const std::vector<Listener>& listeners, Deadline deadline) {
  Places places(peers);
  Acceptor acceptor(peers, known, listeners, places);
  Caller caller(peers, known, places);
  std::vector<pollfd> polled;
  while (const auto absent = places.first_free()) {
    if (Clock::now() >= deadline) throw late(peers, *absent, acceptor, caller);
    polled.clear();
    acceptor.watch(polled);
    const std::size_t of_acceptor = polled.size();
    caller.watch(polled);
    const Deadline first =
        std::min(acceptor.next_limit().value_or(deadline), caller.next_try().value_or(deadline));
    wait_for_any(polled, std::min(first, deadline));
    acceptor.go_on(std::span(polled).first(of_acceptor));
    caller.go_on(std::span(polled).subspan(of_acceptor));
  }
  return places.take();
}

std::vector<Descriptor> connect_mesh(Bootstrap& bootstrap, const TcpOptions& options) {
  const Deadline deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(options.connect_timeout);
  const Peers& peers = bootstrap.peers();
  AddressCard mine = own_card(options.network);
  const std::vector<Listener> listeners = open_listeners(peers, mine);
  const Introduction known = introduce(bootstrap, mine, deadline);
  require_addresses(peers, known.cards, options.network);
  std::vector<Descriptor> mesh = meet(peers, known, listeners, deadline);
  for (const Descriptor& socket : mesh) {
    if (!socket) continue;
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    limit_unsent(socket.get(), options.unsent_limit);
  }
  return mesh;
}

}  // namespace commtune::tcp
