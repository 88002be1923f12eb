#pragma once
// When work that somebody else puts on a GPU's streams has ended, for whoever knows nothing of CUDA: also
// there in a build without it.

#include <functional>
#include <memory>

namespace commtune {

class StreamNotices {
 public:
  /// What is outstanding has to be called first.
  virtual ~StreamNotices() = default;
  StreamNotices() = default;
  StreamNotices(const StreamNotices&) = delete;
  StreamNotices& operator=(const StreamNotices&) = delete;

  /// Once all that the stream was given so far has ended, well or not, `ended` is called by a thread of this
  /// object's: those of one stream in order. It may use no GPU, and throws nothing. From any thread.
  ///
  /// stream  a CUstream, which is a cudaStream_t, of that GPU; nullptr: the default one
  /// throws  Error{kUnavailable} with what the driver said
  virtual void after(void* stream, std::function<void()> ended) = 0;
  /// Comes back when no call is outstanding.
  virtual void settle() = 0;
};

/// gpu     as make_gpu_memory() numbers them
/// throws  as make_gpu_memory() does
std::unique_ptr<StreamNotices> make_stream_notices(int gpu);

}  // namespace commtune
