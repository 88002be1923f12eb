#include "store/owner.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

namespace commtune {
namespace {

constexpr std::size_t kBootDigits = 8;

std::string own_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "unknown";
}

std::string own_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id.size() < kBootDigits ? "unknown" : id.substr(0, kBootDigits);
}

/// Field 22 of /proc/PID/stat; empty when there is no such process.
std::string start_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t name_end = text.rfind(')');  // the name may have spaces
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  constexpr int kFieldsBetween = 20;
  std::string field;
  for (int i = 0; i < kFieldsBetween; ++i) rest >> field;
  return field;
}

}  // namespace

std::string this_process() {
  const std::string pid = std::to_string(::getpid());
  return own_host() + " pid " + pid + " started " + start_of(pid) + " boot " + own_boot();
}

bool is_gone(std::string_view owner) {
  static const std::regex kOwner(R"(^(\S+) pid (\d{1,9})(?: started (\d+) boot (\S+))?$)");
  std::match_results<std::string_view::const_iterator> match;
  if (!std::regex_match(owner.begin(), owner.end(), match, kOwner) || match[1] != own_host()) return false;
  if (match[4].matched && match[4] != own_boot()) return true;
  const std::string pid = match[2];
  if (match[3].matched && match[3] != start_of(pid)) return true;
  return ::kill(static_cast<pid_t>(std::stol(pid)), 0) != 0 && errno == ESRCH;
}

}  // namespace commtune
