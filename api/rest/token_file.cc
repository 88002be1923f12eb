#include "api/rest/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view why) {
  throw Error(ErrorCode::kUnavailable, fmt::format("{}: {}", path.string(), why));
}

/// The folder, made where there is none.
int open_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);  // what is wrong shows below
  ::mkdir(path.c_str(), 0700);
  const int folder = ::open(  // NOLINT(cppcoreguidelines-pro-type-vararg)
      path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0 && (errno == ELOOP || errno == ENOTDIR)) fail(path, "must be a folder, and no link to one");
  if (folder < 0) fail(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(folder, &status) == 0 && status.st_uid == ::geteuid() && (status.st_mode & 022U) == 0)
    return folder;
  ::close(folder);
  fail(path, "must belong to the user of the service, and nobody else may write to it (chmod 700)");
}

}  // namespace

std::filesystem::path start_token_path(const Environment& environment) {
  const auto below = [](const std::filesystem::path& folder) { return folder / "commtune" / "token"; };
  // The specification of these variables tells programs to ignore relative paths.
  const auto absolute = [&](std::string_view variable) {
    const std::string_view text = lookup(environment, variable);
    return text.starts_with('/') ? text : std::string_view{};
  };
  for (const std::string_view variable : {"XDG_RUNTIME_DIR", "XDG_STATE_HOME"})
    if (const std::string_view folder = absolute(variable); !folder.empty()) return below(folder);
  if (const std::string_view home = absolute("HOME"); !home.empty())
    return below(std::filesystem::path(home) / ".local" / "state");
  return {};
}

TokenFile::TokenFile(std::filesystem::path path, std::string_view secret)
    : path_(std::move(path)), text_(fmt::format("{}\n", secret)), folder_(open_folder(path_.parent_path())) {
  try {
    write();
  } catch (...) {
    ::close(folder_);
    throw;
  }
}

TokenFile::~TokenFile() {
  if (is_ours()) ::unlinkat(folder_, path_.filename().c_str(), 0);
  ::close(folder_);
}

void TokenFile::write() const {
  const std::string name = path_.filename().string();
  const std::string fresh = fmt::format(".{}-{}", name, ::getpid());
  ::unlinkat(folder_, fresh.c_str(), 0);  // of a process that had this number and was killed
  const int file = ::openat(              // NOLINT(cppcoreguidelines-pro-type-vararg)
      folder_, fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) fail(path_, std::strerror(errno));
  const bool whole = ::write(file, text_.data(), text_.size()) == static_cast<ssize_t>(text_.size());
  const bool closed = ::close(file) == 0;
  // In one step: a reader sees the old token or the new one, and a link that is there goes.
  if (whole && closed && ::renameat(folder_, fresh.c_str(), folder_, name.c_str()) == 0) return;
  const int why = errno;
  ::unlinkat(folder_, fresh.c_str(), 0);
  fail(path_, std::strerror(why));
}

bool TokenFile::is_ours() const {
  const int file = ::openat(  // NOLINT(cppcoreguidelines-pro-type-vararg)
      folder_, path_.filename().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 256> text{};
  const ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  return size > 0 && std::string_view(text.data(), static_cast<std::size_t>(size)) == text_;
}

}  // namespace commtune::api::rest
