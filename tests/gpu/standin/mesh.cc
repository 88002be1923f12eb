#include "tests/gpu/standin/mesh.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace commtune::standin {
namespace {

/// Longer than any start of the tests' ranks takes.
constexpr int kConnectAttempts = 30'000;

sockaddr_un address_of(const std::string& name, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), size);  // the first byte is 0: no file
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return address;
}

/// Moves what it can; false: the peer has gone.
bool move_on(int socket, Mesh::Bytes& bytes, bool sends) {
  const ssize_t moved = sends ? send(socket, bytes.address, bytes.bytes, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : recv(socket, bytes.address, bytes.bytes, MSG_DONTWAIT);
  if (moved < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (moved == 0) return false;
  bytes.address += moved;
  bytes.bytes -= static_cast<std::size_t>(moved);
  return true;
}

/// The first of each peer that has bytes left.
Mesh::Bytes* first_of(std::vector<Mesh::Bytes>& list, int peer) {
  for (Mesh::Bytes& each : list) {
    if (each.peer == peer && each.bytes > 0) return &each;
  }
  return nullptr;
}

}  // namespace

Mesh::Mesh(std::string name, int rank, int ranks)
    : name_(std::move(name)),
      rank_(rank),
      ranks_(ranks),
      aborted_(eventfd(0, EFD_CLOEXEC)),
      sockets_(static_cast<std::size_t>(ranks), -1) {}

Mesh::~Mesh() {
  for (const int socket : sockets_) {
    if (socket >= 0) close(socket);
  }
  close(aborted_);
}

std::string Mesh::name_of(int rank) const { return name_ + "." + std::to_string(rank); }

int Mesh::listen_here() const {
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t length = 0;
  const sockaddr_un address = address_of(name_of(rank_), length);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener, ranks_) != 0) {
    close(listener);
    throw MeshBroken("this rank is there already");
  }
  return listener;
}

int Mesh::connect_to(int peer) {
  socklen_t length = 0;
  const sockaddr_un address = address_of(name_of(peer), length);
  for (int i = 0; i < kConnectAttempts; ++i) {
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(made, reinterpret_cast<const sockaddr*>(&address), length) == 0) return made;
    close(made);
    std::vector<pollfd> watched;
    watched.push_back({aborted_, POLLIN, 0});
    poll(watched.data(), 1, 1);
    if ((watched.front().revents & POLLIN) != 0) break;
  }
  throw MeshBroken("a rank did not come");
}

void Mesh::accept_from(int listener, int count) {
  for (int i = 0; i < count; ++i) {
    std::vector<pollfd> watched;
    watched.push_back({listener, POLLIN, 0});
    poll_for(watched);
    const int made = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    int peer = -1;
    if (made < 0 || recv(made, &peer, sizeof peer, MSG_WAITALL) != sizeof peer)
      throw MeshBroken("a rank went while it connected");
    sockets_[static_cast<std::size_t>(peer)] = made;
  }
}

void Mesh::connect() {
  const int listener = listen_here();
  try {
    for (int peer = 0; peer < rank_; ++peer) {
      const int made = connect_to(peer);
      sockets_[static_cast<std::size_t>(peer)] = made;
      if (send(made, &rank_, sizeof rank_, MSG_NOSIGNAL) != sizeof rank_)
        throw MeshBroken("a rank went while it connected");
    }
    accept_from(listener, ranks_ - 1 - rank_);
  } catch (...) {
    close(listener);
    throw;
  }
  close(listener);
}

/// Waits for one of them, with a look at abort().
void Mesh::poll_for(std::vector<pollfd>& watched) {
  watched.push_back({aborted_, POLLIN, 0});
  poll(watched.data(), watched.size(), -1);
  if ((watched.back().revents & POLLIN) != 0) throw MeshBroken("aborted");
}

void Mesh::exchange(std::vector<Bytes> sends, std::vector<Bytes> receives) {
  for (;;) {
    std::vector<pollfd> watched;
    for (int peer = 0; peer < ranks_; ++peer) {
      short events = 0;
      if (first_of(sends, peer) != nullptr) events |= POLLOUT;
      if (first_of(receives, peer) != nullptr) events |= POLLIN;
      if (events != 0) watched.push_back({sockets_[static_cast<std::size_t>(peer)], events, 0});
    }
    if (watched.empty()) return;
    poll_for(watched);
    for (int peer = 0; peer < ranks_; ++peer) {
      const int socket = sockets_[static_cast<std::size_t>(peer)];
      Bytes* const out = first_of(sends, peer);
      Bytes* const in = first_of(receives, peer);
      if ((out != nullptr && !move_on(socket, *out, true)) || (in != nullptr && !move_on(socket, *in, false)))
        throw MeshBroken("rank " + std::to_string(peer) + " has gone");
    }
  }
}

void Mesh::abort() {
  const std::uint64_t one = 1;
  static_cast<void>(!write(aborted_, &one, sizeof one));
}

void Mesh::wait_for_abort() {
  std::vector<pollfd> watched;
  watched.push_back({aborted_, POLLIN, 0});
  while (poll(watched.data(), 1, -1) < 0) {
  }
}

}  // namespace commtune::standin
