#include "probes/host/socket_owner.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>

namespace commtune::probes {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{1};  // for the kernel's answer, which takes milliseconds

/// A netlink socket, and its end.
class DiagnosisSocket {
 public:
  DiagnosisSocket() : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
    const timeval patience{kPatience.count(), 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~DiagnosisSocket() {
    if (socket_ >= 0) ::close(socket_);
  }
  DiagnosisSocket(const DiagnosisSocket&) = delete;
  DiagnosisSocket& operator=(const DiagnosisSocket&) = delete;

  /// All UNIX sockets of this network namespace with their names and users.
  bool ask() const {
    struct {
      nlmsghdr header;
      unix_diag_req request;
    } message{};
    message.header.nlmsg_len = sizeof message;
    message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    message.request.sdiag_family = AF_UNIX;
    message.request.udiag_states = ~0U;
    message.request.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID;
    return ::send(socket_, &message, sizeof message, 0) == static_cast<ssize_t>(sizeof message);
  }
  ssize_t read(void* place, std::size_t size) const { return ::recv(socket_, place, size, 0); }

 private:
  int socket_;
};

/// The user of a socket in the kernel's answer, if it is the one of this name.
std::optional<uid_t> user_if_named(const nlmsghdr* message, std::string_view name) {
  const auto* found = static_cast<const unix_diag_msg*>(NLMSG_DATA(message));
  const auto* attribute = reinterpret_cast<const rtattr*>(found + 1);
  auto left = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof *found));
  std::string_view its_name;
  std::optional<uid_t> user;
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    const char* data = static_cast<const char*>(RTA_DATA(attribute));
    const std::size_t size = RTA_PAYLOAD(attribute);
    if (attribute->rta_type == UNIX_DIAG_NAME) its_name = {data, size};
    if (attribute->rta_type == UNIX_DIAG_UID && size == sizeof(uid_t)) {
      std::memcpy(&user.emplace(), data, sizeof(uid_t));
    }
  }
  // A leading zero byte: abstract.
  const bool is_it = its_name.size() == name.size() + 1 && its_name[0] == '\0' && its_name.ends_with(name);
  return is_it ? user : std::nullopt;
}

}  // namespace

std::optional<uid_t> owner_of_abstract_socket(std::string_view name) {
  const auto deadline = SteadyClock::now() + kPatience;
  const DiagnosisSocket kernel;
  if (!kernel.ask()) return std::nullopt;
  alignas(nlmsghdr) std::array<char, 32768> answer;
  while (SteadyClock::now() < deadline) {
    const ssize_t got = kernel.read(answer.data(), answer.size());
    if (got <= 0) return std::nullopt;
    auto left = static_cast<unsigned>(got);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(answer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) return std::nullopt;
      if (const auto user = user_if_named(message, name)) return user;
    }
  }
  return std::nullopt;
}

std::string user_name(uid_t user) {
  std::string number = "uid " + std::to_string(user);
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> texts{};
  if (::getpwuid_r(user, &entry, texts.data(), texts.size(), &found) != 0 || found == nullptr) return number;
  return std::string(entry.pw_name) + " (" + number + ")";
}

}  // namespace commtune::probes
