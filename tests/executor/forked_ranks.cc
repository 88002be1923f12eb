#include "tests/executor/forked_ranks.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "executor/base/descriptor.h"
#include "perfmodel/base/error.h"

namespace commtune::tests {
namespace {

/// What travels between a rank and the process that started it: an order's letter, then so many bytes.
enum class Letter : char { kRecord = 'r', kSaid = 's' };
struct Head {
  Letter letter{};
  std::size_t bytes = 0;
};

bool write_all(int fd, const void* data, std::size_t bytes) {
  return send(fd, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

bool read_all(int fd, void* data, std::size_t bytes) {
  return bytes == 0 || recv(fd, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

void tell(int fd, Letter letter, std::span<const std::byte> bytes) {
  const Head head{letter, bytes.size()};
  write_all(fd, &head, sizeof head);
  write_all(fd, bytes.data(), bytes.size());
}

class ForkedBootstrap final : public Bootstrap {
 public:
  ForkedBootstrap(int fd, Peers peers) : fd_(fd), peers_(std::move(peers)) {}
  const Peers& peers() const override { return peers_; }
  std::vector<std::byte> all_gather(std::span<const std::byte> own, Deadline until) override {
    tell(fd_, Letter::kRecord, own);
    pollfd polled{fd_, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (poll(&polled, 1, static_cast<int>(std::clamp<long>(left, 0, 100'000))) <= 0)
      throw Error(ErrorCode::kTimeout, "waiting for the other ranks: timed out");
    std::vector<std::byte> all(own.size() * peers_.hosts.size());
    if (!read_all(fd_, all.data(), all.size())) throw Error(ErrorCode::kPeerLost, "the test has ended");
    return all;
  }
  void abort(std::string_view /*why*/) noexcept override {}

 private:
  int fd_;
  Peers peers_;
};

[[noreturn]] void be_rank(int fd, Peers peers,
                          const std::function<std::string(std::shared_ptr<Bootstrap>)>& body) {
  std::string said;
  int status = 0;
  try {
    said = body(std::make_shared<ForkedBootstrap>(fd, std::move(peers)));
  } catch (const std::exception& error) {
    said = error.what();
    status = 1;
  }
  tell(fd, Letter::kSaid, std::as_bytes(std::span(said)));
  std::_Exit(status);
}

/// The parent's side: hands records round until each rank has closed its socket.
void serve(const std::vector<Descriptor>& sockets, std::vector<RankEnd>& ends) {
  std::vector<std::vector<std::byte>> records(sockets.size());
  std::vector<bool> open(sockets.size(), true);
  std::size_t arrived = 0;
  while (std::ranges::find(open, true) != open.end()) {
    std::vector<pollfd> polled;
    for (std::size_t rank = 0; rank < sockets.size(); ++rank)
      polled.push_back({open[rank] ? sockets[rank].get() : -1, POLLIN, 0});
    if (poll(polled.data(), polled.size(), 300'000) <= 0) throw std::runtime_error("ranks hang");
    for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
      if (polled[rank].revents == 0) continue;
      Head head;
      if (!read_all(sockets[rank].get(), &head, sizeof head)) {
        open[rank] = false;
        continue;
      }
      std::vector<std::byte> bytes(head.bytes);
      read_all(sockets[rank].get(), bytes.data(), bytes.size());
      if (head.letter == Letter::kSaid) {
        ends[rank].said.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        continue;
      }
      records[rank] = std::move(bytes);
      if (++arrived < sockets.size()) continue;
      arrived = 0;
      std::vector<std::byte> all;
      for (const auto& record : records) all.insert(all.end(), record.begin(), record.end());
      for (const Descriptor& socket : sockets) write_all(socket.get(), all.data(), all.size());
    }
  }
}

}  // namespace

std::vector<RankEnd> on_forked_ranks(int n,
                                     const std::function<std::string(std::shared_ptr<Bootstrap>)>& body,
                                     ForkedHosts hosts) {
  Peers peers;
  for (int rank = 0; rank < n; ++rank) {
    const int host = hosts == ForkedHosts::kOne ? 0 : rank;
    peers.hosts.push_back(fmt::format("h{}", host));
    peers.node.push_back(host);
  }
  std::vector<Descriptor> sockets;
  std::vector<pid_t> processes;
  for (peers.rank = 0; peers.rank < n; ++peers.rank) {
    std::array<int, 2> pair{};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) throw std::runtime_error("no socket pair");
    sockets.emplace_back(pair[0]);
    const Descriptor theirs(pair[1]);
    const pid_t process = fork();
    if (process == 0) {
      sockets.clear();  // else nobody would see that a rank has gone
      be_rank(theirs.get(), peers, body);
    }
    processes.push_back(process);
  }
  std::vector<RankEnd> ends(static_cast<std::size_t>(n));
  serve(sockets, ends);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) waitpid(processes[rank], &ends[rank].status, 0);
  return ends;
}

}  // namespace commtune::tests
