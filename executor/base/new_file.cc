#include "executor/base/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "executor/base/random_digits.h"
#include "perfmodel/base/error.h"

namespace commtune {

NewFile::Folder::Folder(const std::filesystem::path& path)
    : descriptor_(::open(path.empty() ? "." : path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

NewFile::Folder::~Folder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

NewFile::NewFile(std::filesystem::path path) : path_(std::move(path)), folder_(path_.parent_path()) {
  if (folder_.descriptor() < 0) fail(errno);
  if (!path_.has_filename()) fail(EISDIR);
  refuse_what_is_no_file();
  const std::string partial = ".commtune-" + random_digits() + ".partial";
  const int file = ::openat(folder_.descriptor(), partial.c_str(),
                            O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) fail(errno);
  partial_ = partial;
  stream_.reset(::fdopen(file, "w"));
  if (stream_) return;
  const int error = errno;
  ::close(file);
  ::unlinkat(folder_.descriptor(), partial_.c_str(), 0);
  fail(error);
}

NewFile::~NewFile() {
  if (!partial_.empty()) ::unlinkat(folder_.descriptor(), partial_.c_str(), 0);
}

void NewFile::fail(int error) const {
  throw Error(ErrorCode::kStorage,
              fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(error)));
}

void NewFile::refuse_what_is_no_file() const {
  struct stat there {};
  if (::fstatat(folder_.descriptor(), path_.filename().c_str(), &there, 0) != 0) return;
  if (!S_ISREG(there.st_mode)) {
    throw Error(ErrorCode::kBadInput,
                path_.string() + ": must name a file, and there is a folder or device of that name");
  }
}

void NewFile::flush() {
  if (std::ferror(stream_.get()) != 0 || std::fflush(stream_.get()) != 0) fail(errno);
}

void NewFile::put_in_place() {
  flush();
  const int folder = folder_.descriptor();
  if (::renameat(folder, partial_.c_str(), folder, path_.filename().c_str()) != 0) fail(errno);
  partial_.clear();
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  NewFile file(path);
  std::fwrite(text.data(), 1, text.size(), file.stream());
  file.put_in_place();
}

}  // namespace commtune
