#pragma once
// How files are written that somebody named: traces, plans, tables, exports. The folder may be one that
// others can write to, such as /tmp, where a link could lie in wait under the file's name. So a file is made
// under a random name in that folder, only if nothing has that name, and then moved to its place: a link
// there is replaced, what it points at is not touched.

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace commtune {

/// A file that is being written. Removed again if it was never put in place.
class NewFile {
 public:
  /// Opens it beside its place, with the permissions that the umask leaves. What is in the place stays as it
  /// is for now. Throws Error{kBadInput} if that is neither a file nor a link to one, such as /dev/stdout or
  /// a folder; Error{kStorage} if the folder cannot be written.
  explicit NewFile(std::filesystem::path path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::FILE* stream() const { return stream_.get(); }
  /// Throws Error{kStorage} for what could not be written to the stream until now.
  void flush();
  /// Flushes, and moves the file to its place. It can be written on.
  void put_in_place();

 private:
  struct CloseStream {
    void operator()(std::FILE* stream) const noexcept { std::fclose(stream); }
  };
  class Folder {
   public:
    explicit Folder(const std::filesystem::path& path);
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    int descriptor() const { return descriptor_; }

   private:
    int descriptor_;
  };
  [[noreturn]] void fail(int error) const;
  void refuse_what_is_no_file() const;

  const std::filesystem::path path_;
  const Folder folder_;  // the same one for all steps, whatever its name comes to mean meanwhile
  std::string partial_;  // its random name there; empty once it is in place
  std::unique_ptr<std::FILE, CloseStream> stream_;
};

/// Writes a whole file or nothing. Throws as NewFile does.
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace commtune
