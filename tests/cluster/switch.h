#pragma once
// The process around the fabric: TAP devices, the control socket, and waiting until something is due.

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/cluster/control.h"
#include "tests/cluster/fabric.h"
#include "tests/cluster/file_descriptor.h"
#include "tests/cluster/tap.h"

namespace commtune::cluster {

/// One host to attach.
struct HostOptions {
  std::string netns;            ///< path of its network namespace
  std::string device = "eth0";  ///< name of the TAP device made there
  std::size_t group = 0;        ///< index into SwitchOptions::groups
  PortSettings port;
};

struct SwitchOptions {
  std::string control_path;           ///< UNIX socket to listen on; it must not exist
  std::vector<TrunkSettings> groups;  ///< at least one
  std::vector<HostOptions> hosts;
  Time spin = std::chrono::microseconds(20);  ///< the last stretch before a deadline is waited for awake
};

/// Single-threaded; owns its devices and the socket (removed when it ends).
class Switch {
 public:
  /// Makes the devices and listens. Throws Error as Tap does.
  explicit Switch(const SwitchOptions& options);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  /// Until `quit` is asked for on the control socket or `stop` becomes non-zero (set it from a signal
  /// handler).
  void run(const volatile std::sig_atomic_t& stop);

 private:
  struct Device {
    Tap tap;
    bool readable = true;  // edge-triggered: true until a read finds nothing
  };
  struct Client {
    FileDescriptor fd;
    std::string received;
  };

  Time now() const;
  void watch(int fd, std::uint32_t events) const;
  bool read_devices();
  Time next_deadline(Time moment) const;
  void wait(Time duration);
  void on_event(int fd);
  void accept_client();
  void serve_client(Client& client);

  const SwitchOptions options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  FileDescriptor epoll_;
  FileDescriptor listener_;
  std::vector<Device> devices_;
  std::vector<Client> clients_;
  Fabric fabric_;
  bool quit_ = false;
};

}  // namespace commtune::cluster
