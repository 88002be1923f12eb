#pragma once
// A TAP device that is born inside a network namespace: the root namespace never sees it, and it is gone when
// its owner closes it.

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "tests/cluster/file_descriptor.h"
#include "tests/cluster/frame.h"

namespace commtune::cluster {

class Tap {
 public:
  /// Creates `device` in the namespace whose file is `netns` (such as /run/netns/x), with a virtio-net header
  /// and checksum and segmentation offload, so that frames of up to 64 KiB pass as one. The device is left
  /// down. Throws Error{kUnavailable} where TAP devices or the right to make them are missing,
  /// Error{kBadInput} if the namespace does not exist. Switches the calling thread's namespace for a moment.
  Tap(const std::string& netns, const std::string& device, const std::array<std::uint8_t, 6>& mac);

  /// Reads one frame without blocking; false if there is none.
  bool read(Frame& frame) const;

  /// Hands one frame to the namespace; false if it did not take it (device down, no memory).
  bool write(std::span<const std::byte> frame) const;

  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
};

}  // namespace commtune::cluster
