#pragma once
// Two probes on one host would measure each other: the second must not start.

#include <optional>
#include <string>

namespace commtune::probes {

/// Held while it lives, by the kernel: however the process ends, the lock goes with it. An abstract UNIX
/// socket, so there is no file to leave behind; one per network namespace, so emulated hosts have one each.
class HostLock {
 public:
  /// nullopt when another process holds it. Never waits: whoever may use the host can hold the lock for as
  /// long as he likes, a probe or not.
  static std::optional<HostLock> take();

  /// A sentence for people that says why take() returned nothing. If another user holds the lock, it names
  /// the user, who can be asked to end the probe. Returns within a second or so.
  static std::string conflict(const std::string& host);

  ~HostLock();
  HostLock(HostLock&& other) noexcept;
  HostLock& operator=(HostLock&& other) noexcept;

 private:
  explicit HostLock(int socket) : socket_(socket) {}
  int socket_ = -1;
};

}  // namespace commtune::probes
