#include "executor/transport/tcp/mesh.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "executor/transport/tcp/pace.h"
#include "perfmodel/error.h"

namespace commtune::tcp {
namespace {

constexpr Tag kAddressTag = make_tag(Channel::kControl, kTagNumbers - 2);
constexpr std::uint32_t kMagic = 0x636f6d74;  // "comt": what a connection must open with
constexpr std::size_t kMaxAddresses = 8;

/// An IPv4 address in a network, in host byte order.
struct Address {
  std::uint32_t ip = 0;
  std::uint32_t mask = 0;
  bool shares_network_with(const Address& other) const {
    return mask == other.mask && (ip & mask) == (other.ip & other.mask);
  }
};

/// Where a rank listens; what ranks tell each other.
struct Card {
  std::uint32_t port = 0;
  std::uint32_t count = 0;
  std::array<Address, kMaxAddresses> addresses{};
};

struct Hello {
  std::uint32_t magic = kMagic;
  std::int32_t rank = 0;
};

std::string to_text(std::uint32_t ip) {
  return fmt::format("{}.{}.{}.{}", ip >> 24, (ip >> 16) & 255, (ip >> 8) & 255, ip & 255);
}

Error system_error(ErrorCode code, const std::string& what) {
  return Error(code, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// "10.0.0.0/24" -> its address and mask. Throws Error{kBadInput}.
Address parse_network(const std::string& text) {
  const auto slash = text.find('/');
  in_addr parsed{};
  int bits = -1;
  if (slash != std::string::npos) {
    std::from_chars(text.data() + slash + 1, text.data() + text.size(), bits);
  }
  if (bits < 1 || bits > 32 || inet_pton(AF_INET, text.substr(0, slash).c_str(), &parsed) != 1) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("network = '{}': expected an IPv4 network such as 10.0.0.0/24", text));
  }
  const std::uint32_t mask = ~std::uint32_t{0} << (32 - bits);
  return {ntohl(parsed.s_addr) & mask, mask};
}

/// This host's IPv4 addresses on interfaces that are up, loopback left out; only those in `network` if it is
/// given.
Card usable_addresses(const std::string& network) {
  std::optional<Address> wanted;
  if (!network.empty()) wanted = parse_network(network);
  Card card;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) throw system_error(ErrorCode::kUnavailable, "listing network interfaces");
  for (const ifaddrs* i = list; i != nullptr && card.count < kMaxAddresses; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    const bool loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    if ((i->ifa_flags & IFF_UP) == 0 || (loopback && !wanted)) continue;
    sockaddr_in ip{}, mask{};
    std::memcpy(&ip, i->ifa_addr, sizeof ip);
    std::memcpy(&mask, i->ifa_netmask, sizeof mask);
    const Address address{ntohl(ip.sin_addr.s_addr), ntohl(mask.sin_addr.s_addr)};
    if (wanted && (address.ip & wanted->mask) != wanted->ip) continue;
    card.addresses[card.count++] = address;
  }
  freeifaddrs(list);
  return card;
}

/// A socket that listens on every address, at a port that the system picks.
std::pair<Descriptor, std::uint32_t> listen_anywhere(int backlog) {
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof any;
  if (!listener || bind(listener.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 ||
      listen(listener.get(), backlog) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&any), &length) != 0) {
    throw system_error(ErrorCode::kUnavailable, "listening for other ranks");
  }
  return {std::move(listener), ntohs(any.sin_port)};
}

/// Every rank's card, exchanged over the bootstrap.
std::vector<Card> exchange(Transport& bootstrap, const Card& mine, Deadline deadline) {
  const int rank = bootstrap.peers().rank;
  std::vector<Card> cards(bootstrap.peers().hosts.size());
  cards[static_cast<std::size_t>(rank)] = mine;
  std::size_t pending = 0;
  for (int peer = 0; peer < bootstrap.peers().size(); ++peer) {
    if (peer == rank) continue;
    auto& theirs = cards[static_cast<std::size_t>(peer)];
    bootstrap.receive(peer, kAddressTag, std::as_writable_bytes(std::span(&theirs, 1)));
    bootstrap.send(peer, kAddressTag, std::as_bytes(std::span(&mine, 1)));
    pending += 2;
  }
  while (pending > 0) {
    const auto completed = bootstrap.wait(deadline);
    if (completed.empty() && Clock::now() >= deadline) {
      throw Error(ErrorCode::kTimeout, "exchanging addresses with the other ranks: timed out");
    }
    pending -= completed.size();
  }
  return cards;
}

/// The address of `theirs` that `mine` shares a network with, else its first one.
std::uint32_t reachable_address(const Card& mine, const Card& theirs) {
  for (std::uint32_t i = 0; i < mine.count; ++i) {
    for (std::uint32_t j = 0; j < theirs.count; ++j) {
      if (mine.addresses[i].shares_network_with(theirs.addresses[j])) return theirs.addresses[j].ip;
    }
  }
  return theirs.addresses[0].ip;
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<decltype(left)>(left, 0));
}

bool ready_before(int fd, short events, Deadline deadline) {
  pollfd waiting{fd, events, 0};
  while (true) {
    const int ready = poll(&waiting, 1, milliseconds_until(deadline));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw system_error(ErrorCode::kUnavailable, "waiting for a connection");
  }
}

Descriptor connect_to(std::uint32_t ip, std::uint32_t port, int own_rank, const std::string& who,
                      Deadline deadline) {
  Descriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(ip);
  const std::string where = fmt::format("connecting to {} at {}:{}", who, to_text(ip), port);
  if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    throw system_error(ErrorCode::kPeerLost, where);
  }
  if (!ready_before(connection.get(), POLLOUT, deadline))
    throw Error(ErrorCode::kTimeout, where + ": timed out");
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) throw Error(ErrorCode::kPeerLost, fmt::format("{}: {}", where, std::strerror(error)));
  const Hello hello{kMagic, own_rank};
  // A fresh connection's buffer is empty: eight bytes always fit.
  if (::send(connection.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    throw system_error(ErrorCode::kPeerLost, where);
  }
  return connection;
}

/// Accepts one connection and reads who it is; nullopt for a stranger, which is dropped.
std::optional<std::pair<int, Descriptor>> accept_one(int listener, Deadline deadline) {
  Descriptor connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection) return std::nullopt;
  Hello hello{0, -1};
  std::size_t got = 0;
  while (got < sizeof hello && ready_before(connection.get(), POLLIN, deadline)) {
    const ssize_t n = recv(connection.get(), reinterpret_cast<char*>(&hello) + got, sizeof hello - got, 0);
    if (n <= 0) return std::nullopt;
    got += static_cast<std::size_t>(n);
  }
  if (hello.magic != kMagic) return std::nullopt;
  return std::pair{hello.rank, std::move(connection)};
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

std::vector<Descriptor> connect_mesh(Transport& bootstrap, const TcpOptions& options) {
  const Deadline deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(options.connect_timeout);
  const Peers& peers = bootstrap.peers();
  Card mine = usable_addresses(options.network);
  auto [listener, port] = listen_anywhere(peers.size());
  mine.port = port;
  const std::vector<Card> cards = exchange(bootstrap, mine, deadline);

  // The higher rank of a pair connects; the lower one accepts.
  std::vector<Descriptor> mesh(peers.hosts.size());
  const int own_node = peers.node[static_cast<std::size_t>(peers.rank)];
  for (int peer = 0; peer < peers.rank; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    const bool same_host = peers.node[index] == own_node;
    if (!same_host && cards[index].count == 0) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("{} has no network address{}", describe(peers, peer),
                              options.network.empty() ? "" : " in " + options.network));
    }
    const std::uint32_t ip = same_host ? INADDR_LOOPBACK : reachable_address(mine, cards[index]);
    mesh[index] = connect_to(ip, cards[index].port, peers.rank, describe(peers, peer), deadline);
  }
  const auto missing = [&]() -> std::optional<int> {
    for (int peer = peers.rank + 1; peer < peers.size(); ++peer) {
      if (!mesh[static_cast<std::size_t>(peer)]) return peer;
    }
    return std::nullopt;
  };
  while (const auto absent = missing()) {
    if (!ready_before(listener.get(), POLLIN, deadline)) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("waiting for {} to connect: timed out", describe(peers, *absent)));
    }
    auto arrived = accept_one(listener.get(), deadline);
    if (arrived && arrived->first > peers.rank && arrived->first < peers.size()) {
      mesh[static_cast<std::size_t>(arrived->first)] = std::move(arrived->second);
    }
  }
  for (std::size_t peer = 0; peer < mesh.size(); ++peer) {
    if (!mesh[peer]) continue;
    const int on = 1;
    setsockopt(mesh[peer].get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    limit_unsent(mesh[peer].get(), options.unsent_limit);
  }
  return mesh;
}

}  // namespace commtune::tcp
