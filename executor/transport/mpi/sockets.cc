#include "executor/transport/mpi/sockets.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdlib>

namespace commtune {

void limit_unsent(std::size_t bytes) noexcept {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return;
  const int limit = static_cast<int>(bytes);
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    const int descriptor = std::atoi(entry->d_name);  // NOLINT(cert-err34-c): the kernel's own numbers
    // On anything but a TCP socket this fails and changes nothing.
    static_cast<void>(setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &limit, sizeof limit));
  }
  closedir(directory);
}

}  // namespace commtune
