#include "tests/cluster/switch.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "perfmodel/base/error.h"

namespace commtune::cluster {

namespace {

constexpr int kFramesPerTurn = 8;  // read from one host before looking at the clock again
constexpr Time kForever = Time::max() / 2;
constexpr std::size_t kLongestRequest = 4096;

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kUnavailable, what + ": " + std::strerror(errno));
}

FileDescriptor listen_on(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    throw Error(ErrorCode::kBadInput, "control socket '" + path + "': must have 1 to " +
                                          std::to_string(sizeof address.sun_path - 1) + " characters");
  }
  path.copy(address.sun_path, path.size());
  FileDescriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), 8) != 0) {
    fail(path);
  }
  return fd;
}

}  // namespace

Switch::Switch(const SwitchOptions& options)
    : options_(options),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      listener_(listen_on(options.control_path)),
      fabric_(
          [this](std::size_t port, std::span<const std::byte> frame) { devices_[port].tap.write(frame); }) {
  if (!epoll_) fail("epoll_create1");
  for (const TrunkSettings& group : options.groups) fabric_.add_group(group);
  for (const HostOptions& host : options.hosts) {
    const std::size_t port = fabric_.add_port(host.port, host.group);
    devices_.push_back({Tap(host.netns, host.device, mac_address(port))});
    watch(devices_.back().tap.fd(), EPOLLIN | EPOLLET);
  }
  watch(listener_.get(), EPOLLIN);
}

Switch::~Switch() { ::unlink(options_.control_path.c_str()); }

Time Switch::now() const { return std::chrono::steady_clock::now() - start_; }

void Switch::watch(int fd, std::uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

void Switch::run(const volatile std::sig_atomic_t& stop) {
  while (stop == 0 && !quit_) {
    fabric_.advance(now());
    if (read_devices()) continue;
    const Time left = next_deadline(now()) - now();
    wait(std::max(left - options_.spin, Time{0}));
  }
}

/// Reads what hosts have to send, a few frames each; true if there may be more.
bool Switch::read_devices() {
  bool more = false;
  for (std::size_t port = 0; port < devices_.size(); ++port) {
    Device& device = devices_[port];
    for (int turn = 0; turn < kFramesPerTurn && device.readable; ++turn) {
      const Time moment = now();
      if (fabric_.wait_to_read(port, moment)) break;
      Frame* frame = fabric_.take_frame();
      if (frame == nullptr) break;
      device.readable = device.tap.read(*frame);
      if (device.readable) {
        fabric_.send(port, frame, moment);
        more = true;
      } else {
        fabric_.drop(frame);
      }
    }
  }
  return more;
}

Time Switch::next_deadline(Time moment) const {
  Time deadline = fabric_.next_event().value_or(kForever);
  for (std::size_t port = 0; port < devices_.size(); ++port) {
    if (!devices_[port].readable) continue;
    // Readable and yet not read: the host's uplink is busy, or all frames are in flight until the next event.
    if (const auto again = fabric_.wait_to_read(port, moment)) deadline = std::min(deadline, *again);
  }
  return deadline;
}

/// Sleeps for that long or until something can be read; with no time only looks what can.
void Switch::wait(Time duration) {
  std::array<epoll_event, 32> events;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration);
  const auto rest = std::chrono::floor<std::chrono::nanoseconds>(duration - seconds);
  const timespec limit{seconds.count(), rest.count()};
  const int count = ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   duration > kForever / 2 ? nullptr : &limit, nullptr);
  for (int i = 0; i < count; ++i) on_event(events[static_cast<std::size_t>(i)].data.fd);
}

void Switch::on_event(int fd) {
  for (Device& device : devices_) {
    if (device.tap.fd() == fd) {
      device.readable = true;
      return;
    }
  }
  if (fd == listener_.get()) return accept_client();
  const auto client =
      std::find_if(clients_.begin(), clients_.end(), [&](const Client& c) { return c.fd.get() == fd; });
  if (client == clients_.end()) return;
  serve_client(*client);
  if (!client->fd) clients_.erase(client);
}

void Switch::accept_client() {
  FileDescriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd) return;
  watch(fd.get(), EPOLLIN);
  clients_.push_back({std::move(fd), {}});
}

/// Answers the complete requests that have arrived; hangs up on clients that left or do not end a line.
void Switch::serve_client(Client& client) {
  std::array<char, kLongestRequest> buffer;
  const ssize_t got = ::recv(client.fd.get(), buffer.data(), buffer.size(), 0);
  if (got <= 0 || client.received.size() + static_cast<std::size_t>(got) > kLongestRequest) {
    client.fd = FileDescriptor();
    return;
  }
  client.received.append(buffer.data(), static_cast<std::size_t>(got));
  for (std::size_t end = client.received.find('\n'); end != std::string::npos;
       end = client.received.find('\n')) {
    ControlReply reply = handle_request(std::string_view(client.received).substr(0, end), fabric_);
    client.received.erase(0, end + 1);
    reply.json += '\n';
    quit_ = quit_ || reply.quit;
    if (::send(client.fd.get(), reply.json.data(), reply.json.size(), MSG_NOSIGNAL) < 0) {
      client.fd = FileDescriptor();
      return;
    }
  }
}

}  // namespace commtune::cluster
