// Is the emulated network what it says? Real TCP between the hosts of a running cluster, compared with the
// truth that the cluster states. Run it from outside, as root:
//
//   tests/cluster/up && tests/cluster/truth > truth.json && cluster_bench truth.json [PATTERN]
//
// PATTERN leaves out what does not contain it: ping-pong, ring, incast, stream.
// One process; each thread works inside one host's namespace, so all read one clock. Every pattern checks the
// bytes that it received before it is timed.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/file_descriptor.h"

namespace {

using commtune::cluster::FileDescriptor;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kLargestMessage = std::size_t{8} << 20;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

struct Host {
  std::string name, address, netns;
};

struct Link {
  double wire_bytes_per_second = 0;
  double delay = 0;  // seconds
};

struct Truth {
  std::vector<Host> hosts;
  std::vector<std::vector<Link>> links;  // [from][to]
  double mtu = 1500;
  double goodput_ratio = 1;

  /// One-way time of a message over TCP: every byte and header at the rate, once, and the delay.
  double one_way(std::size_t from, std::size_t to, std::size_t bytes) const {
    const Link& link = links[from][to];
    const double segment = mtu - 52;
    const double full = std::floor(static_cast<double>(bytes) / segment);
    const double rest = static_cast<double>(bytes) - full * segment;
    const double last = rest > 0 ? std::max(rest + 66, 60.0) + 24 : 0;
    return link.delay + (full * (mtu + 38) + last) / link.wire_bytes_per_second;
  }
  double goodput(std::size_t from, std::size_t to) const {
    return links[from][to].wire_bytes_per_second * goodput_ratio;
  }
};

Truth read_truth(const char* path) {
  std::ifstream file(path);
  if (!file) fail(path);
  const auto json = nlohmann::json::parse(file);
  Truth truth;
  truth.mtu = json.at("mtu");
  truth.goodput_ratio = json.at("goodput_ratio");
  for (const auto& host : json.at("hosts")) {
    truth.hosts.push_back({host.at("name"), host.at("address"), host.at("netns")});
  }
  const std::size_t count = truth.hosts.size();
  truth.links.assign(count, std::vector<Link>(count));
  const auto index = [&](const std::string& name) {
    return static_cast<std::size_t>(
        std::find_if(truth.hosts.begin(), truth.hosts.end(), [&](const Host& h) { return h.name == name; }) -
        truth.hosts.begin());
  };
  for (const auto& pair : json.at("pairs")) {
    truth.links[index(pair.at("from"))][index(pair.at("to"))] = {pair.at("wire_bytes_per_second"),
                                                                 pair.at("delay_seconds")};
  }
  return truth;
}

/// The calling thread works in this host from here on.
void enter(const Host& host) {
  const FileDescriptor netns(::open(host.netns.c_str(), O_RDONLY | O_CLOEXEC));
  if (!netns || ::setns(netns.get(), CLONE_NEWNET) != 0) fail("cannot enter " + host.netns);
}

sockaddr_in endpoint(const Host& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.address.c_str(), &address.sin_addr) != 1) fail(host.address);
  return address;
}

void send_all(int fd, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = ::send(fd, data, bytes, MSG_NOSIGNAL);
    if (sent <= 0) fail("send");
    data += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void receive_all(int fd, char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::recv(fd, data, bytes, 0);
    if (got <= 0) fail("recv");
    data += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

struct Connection {
  FileDescriptor sender, receiver;  // the end in the host `from`, the end in the host `to`
};

/// A TCP connection from one host to another. Sockets stay in the namespace where they were made, so the
/// thread that uses them need not be there.
Connection connect_hosts(const Host& from, const Host& to) {
  Connection result;
  std::exception_ptr failure;
  std::thread([&] {
    try {
      enter(to);
      const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in address = endpoint(to, 0);
      socklen_t size = sizeof address;
      if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
          ::listen(listener.get(), 1) != 0 ||
          ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        fail("listen");
      }
      enter(from);
      result.sender = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(result.sender.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) fail("connect");
      result.receiver = FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!result.receiver) fail("accept");
      const int on = 1;
      ::setsockopt(result.sender.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ::setsockopt(result.receiver.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return result;
}

/// Deterministic bytes, different for each flow.
std::vector<char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<char> data(bytes);
  unsigned state = seed * 2654435761U + 1;
  for (char& byte : data) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24);
  }
  return data;
}

struct Summary {
  double median = 0, least = 0, p95 = 0;
};

Summary summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values[values.size() * 95 / 100]};
}

void print(const std::string& what, const Summary& measured, double ideal) {
  std::printf("%-34s %10.1f %10.1f %10.1f %10.1f %+8.2f %%\n", what.c_str(), ideal * 1e6,
              measured.least * 1e6, measured.median * 1e6, measured.p95 * 1e6,
              (measured.median / ideal - 1) * 100);
  std::fflush(stdout);
}

/// Half round trips of one message at a time.
void ping_pong(const Truth& truth, std::size_t bytes, int repetitions) {
  const Connection connection = connect_hosts(truth.hosts[0], truth.hosts[1]);
  const std::vector<char> message = pattern(bytes, 1);
  constexpr int kWarmUp = 5;
  std::thread echo([&] {
    std::vector<char> buffer(bytes);
    for (int i = 0; i < repetitions + kWarmUp; ++i) {
      receive_all(connection.receiver.get(), buffer.data(), bytes);
      send_all(connection.receiver.get(), buffer.data(), bytes);
    }
  });
  std::vector<char> buffer(bytes);
  std::vector<double> times;
  for (int i = 0; i < repetitions + kWarmUp; ++i) {
    const auto start = Clock::now();
    send_all(connection.sender.get(), message.data(), bytes);
    receive_all(connection.sender.get(), buffer.data(), bytes);
    if (i >= kWarmUp) times.push_back(Seconds(Clock::now() - start).count() / 2);
    if (buffer != message) throw std::runtime_error("ping-pong: bytes differ");
  }
  echo.join();
  print("ping-pong " + std::to_string(bytes) + " B, one way", summarize(times), truth.one_way(0, 1, bytes));
}

struct Flow {
  std::size_t from, to;
};

std::vector<Connection> connect_flows(const Truth& truth, const std::vector<Flow>& flows) {
  std::vector<Connection> connections;
  connections.reserve(flows.size());
  for (const Flow& flow : flows) {
    connections.push_back(connect_hosts(truth.hosts[flow.from], truth.hosts[flow.to]));
  }
  return connections;
}

/// Every flow sends one message of `bytes` at the same moment; how long until all have arrived.
void exchange(const std::string& what, const Truth& truth, const std::vector<Flow>& flows, std::size_t bytes,
              int repetitions, double ideal) {
  std::vector<Connection> connections = connect_flows(truth, flows);
  constexpr int kWarmUp = 3;
  Clock::time_point begin;
  std::barrier start(static_cast<std::ptrdiff_t>(2 * flows.size() + 1),
                     [&]() noexcept { begin = Clock::now(); });
  std::barrier finish(static_cast<std::ptrdiff_t>(2 * flows.size() + 1));
  std::atomic<bool> wrong = false;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::vector<char> message = pattern(bytes, static_cast<unsigned>(i));
      for (int turn = 0; turn < repetitions + kWarmUp; ++turn) {
        start.arrive_and_wait();
        send_all(connections[i].sender.get(), message.data(), bytes);
        finish.arrive_and_wait();
      }
    });
    threads.emplace_back([&, i] {
      const std::vector<char> expected = pattern(bytes, static_cast<unsigned>(i));
      std::vector<char> buffer(bytes);
      for (int turn = 0; turn < repetitions + kWarmUp; ++turn) {
        start.arrive_and_wait();
        receive_all(connections[i].receiver.get(), buffer.data(), bytes);
        finish.arrive_and_wait();
        if (turn < kWarmUp && buffer != expected) wrong = true;
      }
    });
  }
  std::vector<double> times;
  for (int turn = 0; turn < repetitions + kWarmUp; ++turn) {
    start.arrive_and_wait();
    finish.arrive_and_wait();
    if (turn >= kWarmUp) times.push_back(Seconds(Clock::now() - begin).count());
  }
  for (std::thread& thread : threads) thread.join();
  if (wrong) throw std::runtime_error(what + ": bytes differ");
  print(what, summarize(times), ideal);
}

/// Every flow streams; goodput of each over one second after a warm-up, against `ideal` bytes per second of
/// all together.
void stream(const std::string& what, const Truth& truth, const std::vector<Flow>& flows, double ideal) {
  std::vector<Connection> connections = connect_flows(truth, flows);
  std::vector<std::atomic<std::uint64_t>> received(flows.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::vector<char> data(std::size_t{1} << 18, 'x');
      while (::send(connections[i].sender.get(), data.data(), data.size(), MSG_NOSIGNAL) > 0) {
      }
    });
    threads.emplace_back([&, i] {
      std::vector<char> buffer(std::size_t{1} << 18);
      for (ssize_t got; (got = ::recv(connections[i].receiver.get(), buffer.data(), buffer.size(), 0)) > 0;) {
        received[i] += static_cast<std::uint64_t>(got);
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::vector<std::uint64_t> before(flows.size());
  for (std::size_t i = 0; i < flows.size(); ++i) before[i] = received[i];
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  double total = 0, least = 1e18, most = 0;
  const double seconds = Seconds(Clock::now() - begin).count();
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const double rate = static_cast<double>(received[i] - before[i]) / seconds;
    total += rate;
    least = std::min(least, rate);
    most = std::max(most, rate);
  }
  for (Connection& connection : connections) ::shutdown(connection.sender.get(), SHUT_RDWR);
  for (Connection& connection : connections) ::shutdown(connection.receiver.get(), SHUT_RDWR);
  for (std::thread& thread : threads) thread.join();
  std::printf("%-34s ideal %8.3f MB/s, measured %8.3f MB/s (%+.2f %%), flows %.3f to %.3f MB/s\n",
              what.c_str(), ideal / 1e6, total / 1e6, (total / ideal - 1) * 100, least / 1e6, most / 1e6);
  std::fflush(stdout);
}

/// Runs what `pattern` lets through.
void run(const Truth& truth, const std::string& pattern) {
  const auto wanted = [&](const std::string& what) { return what.find(pattern) != std::string::npos; };
  const std::size_t count = truth.hosts.size();
  std::vector<Flow> ring, incast;
  double ring_goodput = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ring.push_back({i, (i + 1) % count});
    ring_goodput += truth.goodput(i, (i + 1) % count);
    if (i > 0) incast.push_back({i, 0});
  }
  std::printf("%-34s %10s %10s %10s %10s\n", "times in us", "ideal", "least", "median", "p95");
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{1024}, std::size_t{16384}, std::size_t{65536},
                                  std::size_t{1} << 20, kLargestMessage}) {
    if (wanted("ping-pong")) ping_pong(truth, bytes, bytes > 100'000 ? 15 : 300);
  }
  for (const std::size_t bytes : {std::size_t{65536}, std::size_t{1} << 20, std::size_t{4} << 20}) {
    const std::string size = std::to_string(bytes >> 10) + " KiB";
    const auto slowest = std::max_element(ring.begin(), ring.end(), [&](const Flow& a, const Flow& b) {
      return truth.one_way(a.from, a.to, bytes) < truth.one_way(b.from, b.to, bytes);
    });
    if (wanted("ring exchange")) {
      exchange("ring exchange " + size, truth, ring, bytes, 20,
               truth.one_way(slowest->from, slowest->to, bytes));
    }
    const double delay = truth.links[1][0].delay;
    const double each = truth.one_way(1, 0, bytes) - delay;
    if (wanted("incast")) {
      exchange("incast " + std::to_string(count - 1) + " x " + size, truth, incast, bytes, 20,
               delay + static_cast<double>(count - 1) * each);
    }
  }
  const double one = truth.goodput(0, 1);
  if (wanted("stream, one flow")) stream("stream, one flow", truth, {{0, 1}}, one);
  if (wanted("stream, both directions")) {
    stream("stream, both directions", truth, {{0, 1}, {1, 0}}, one + truth.goodput(1, 0));
  }
  if (wanted("stream, ring")) stream("stream, ring", truth, ring, ring_goodput);
  if (wanted("stream, incast")) stream("stream, incast", truth, incast, truth.goodput(1, 0));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fputs(
        "usage: cluster_bench TRUTH.json [PATTERN]   (from tests/cluster/truth, while the cluster is up)\n",
        stderr);
    return 2;
  }
  try {
    run(read_truth(argv[1]), argc == 3 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cluster_bench: %s\n", error.what());
    return 1;
  }
}
