#include "executor/base/shared_library.h"

#include <dlfcn.h>

#include <utility>

namespace commtune {

SharedLibrary::SharedLibrary(std::string file) : file_(std::move(file)) {
  handle_ = dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ != nullptr) return;
  const char* const words = dlerror();
  why_not_ = words == nullptr ? file_ + " cannot be loaded" : words;
}

void* SharedLibrary::symbol(const char* name, const char* version) const noexcept {
  if (handle_ == nullptr) return nullptr;
  return version == nullptr ? dlsym(handle_, name) : dlvsym(handle_, name, version);
}

std::string SharedLibrary::described(const char* name, const char* version) {
  return version == nullptr ? std::string(name) : std::string(name) + "@" + version;
}

}  // namespace commtune
