#pragma once
// Libraries that are loaded when the program runs: one program serves hosts that have them and hosts that do
// not.

#include <string>
#include <string_view>

namespace commtune {

/// A shared library, for as long as the process lives: drivers, which such libraries load, are not made to be
/// unloaded.
class SharedLibrary {
 public:
  /// file  as dlopen() takes it: "libcuda.so.1", or a path
  explicit SharedLibrary(std::string file);

  const std::string& file() const { return file_; }
  bool is_there() const { return handle_ != nullptr; }
  /// Of what did not load: the system's words.
  const std::string& why_not() const { return why_not_; }

  /// Sets `function` to the symbol of this name, in this version of the library's interface where it is said;
  /// to nullptr where the library has none, which missing() then names.
  template <typename Function>
  void find(Function& function, const char* name, const char* version = nullptr) {
    function = reinterpret_cast<Function>(symbol(name, version));
    if (function == nullptr && missing_.empty()) missing_ = described(name, version);
  }
  /// The same, but for a symbol that older libraries lack.
  template <typename Function>
  void find_newer(Function& function, const char* name) {
    function = reinterpret_cast<Function>(symbol(name, nullptr));
  }
  /// The first symbol that find() did not find; empty: all are there.
  const std::string& missing() const { return missing_; }

 private:
  void* symbol(const char* name, const char* version) const noexcept;
  static std::string described(const char* name, const char* version);

  std::string file_;
  void* handle_ = nullptr;
  std::string why_not_, missing_;
};

}  // namespace commtune
