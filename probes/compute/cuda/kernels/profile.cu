// What a layer computes beside convolutions, normalisations of batches, pooling and products: NVIDIA's
// libraries have no call for it, or frameworks use kernels of their own as well. One-dimensional grids;
// numbers are 64-bit, factors float. Host twins: tests/gpu/standin/twins_profile.cc.

namespace {

// bfloat16 by its bits, rounded to the nearest even: the same on the host.
struct Bf16 {
  unsigned short bits;
};

__device__ float to_float(float value) { return value; }
__device__ float to_float(Bf16 value) { return __uint_as_float(static_cast<unsigned>(value.bits) << 16); }
__device__ void store(float& into, float value) { into = value; }
__device__ void store(Bf16& into, float value) {
  const unsigned bits = __float_as_uint(value);
  into.bits = static_cast<unsigned short>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// 16 bytes, which one load or store moves.
template <typename T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(T);
  T items[kCount];
};

__device__ long long thread() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ long long threads() { return static_cast<long long>(gridDim.x) * blockDim.x; }

/// Sum over the block, to all of its threads. At most 32 warps.
__device__ float block_sum(float value) {
  __shared__ float sums[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffU, value, step);
  __syncthreads();  // who reads what the sum before left
  if (lane == 0) sums[warp] = value;
  __syncthreads();
  float sum = 0;
  for (unsigned i = 0; i < warps; ++i) sum += sums[i];
  return sum;
}

// --- activations ----------------------------------------------------------------------------------------

enum Which { kRelu = 0, kGelu = 1, kTanh = 2 };  // as Function of probes/compute/architecture.h
constexpr float kRootHalf = 0.70710678F;         // 1 / sqrt(2)
constexpr float kNormal = 0.39894228F;           // 1 / sqrt(2 pi)

__device__ float activated(float x, int which) {
  if (which == kRelu) return x > 0 ? x : 0;
  if (which == kTanh) return tanhf(x);
  return 0.5F * x * (1 + erff(x * kRootHalf));
}

__device__ float slope(float x, int which) {
  if (which == kRelu) return x > 0 ? 1 : 0;
  if (which == kTanh) {
    const float y = tanhf(x);
    return 1 - y * y;
  }
  return 0.5F * (1 + erff(x * kRootHalf)) + x * kNormal * expf(-0.5F * x * x);
}

/// y[i] = f(a[i], b[i])
template <typename T, typename F>
__device__ void each(const T* a, const T* b, T* y, long long count, const F& f) {
  const long long packs = count / Pack<T>::kCount;
  for (long long i = thread(); i < packs; i += threads()) {
    const Pack<T> one = reinterpret_cast<const Pack<T>*>(a)[i], two = reinterpret_cast<const Pack<T>*>(b)[i];
    Pack<T> out;
#pragma unroll
    for (int k = 0; k < Pack<T>::kCount; ++k)
      store(out.items[k], f(to_float(one.items[k]), to_float(two.items[k])));
    reinterpret_cast<Pack<T>*>(y)[i] = out;
  }
  for (long long i = packs * Pack<T>::kCount + thread(); i < count; i += threads())
    store(y[i], f(to_float(a[i]), to_float(b[i])));
}

template <typename T>
__device__ void activation_forward(const T* x, T* y, long long count, int which) {
  each(x, x, y, count, [which](float a, float) { return activated(a, which); });
}

template <typename T>
__device__ void activation_backward(const T* x, const T* dy, T* dx, long long count, int which) {
  each(x, dy, dx, count, [which](float a, float gradient) { return gradient * slope(a, which); });
}

template <typename T>
__device__ void addition(const T* a, const T* b, T* y, long long count) {
  each(a, b, y, count, [](float one, float two) { return one + two; });
}

// --- biases ---------------------------------------------------------------------------------------------

/// y[row][column] += bias[column]
template <typename T>
__device__ void add_bias(T* y, const float* bias, long long rows, long long columns) {
  const long long count = rows * columns, packs = count / Pack<T>::kCount;
  for (long long i = thread(); i < packs; i += threads()) {
    Pack<T> values = reinterpret_cast<Pack<T>*>(y)[i];
    long long column = i * Pack<T>::kCount % columns;
#pragma unroll
    for (int k = 0; k < Pack<T>::kCount; ++k) {
      store(values.items[k], to_float(values.items[k]) + bias[column]);
      if (++column == columns) column = 0;
    }
    reinterpret_cast<Pack<T>*>(y)[i] = values;
  }
  for (long long i = packs * Pack<T>::kCount + thread(); i < count; i += threads())
    store(y[i], to_float(y[i]) + bias[i % columns]);
}

constexpr int kTileColumns = 32, kTileThreads = 8, kTileRows = 64;  // 256 threads sum 64 rows of 32 columns

/// Adds sums over this block's rows to `first` and `second`; f gives two values of a row and column.
template <typename F>
__device__ void sum_columns(float* first, float* second, long long rows, long long columns, const F& f) {
  __shared__ float ones[kTileThreads][kTileColumns], twos[kTileThreads][kTileColumns];
  const long long tiles = (columns + kTileColumns - 1) / kTileColumns;
  const int x = threadIdx.x % kTileColumns, y = threadIdx.x / kTileColumns;
  const long long column = blockIdx.x % tiles * kTileColumns + x;
  const long long begin = blockIdx.x / tiles * kTileRows, end = min(begin + kTileRows, rows);
  float one = 0, two = 0;
  if (column < columns) {
    for (long long row = begin + y; row < end; row += kTileThreads) f(row, column, one, two);
  }
  ones[y][x] = one;
  twos[y][x] = two;
  __syncthreads();
  if (y != 0 || column >= columns) return;
  for (int i = 1; i < kTileThreads; ++i) {
    one += ones[i][x];
    two += twos[i][x];
  }
  atomicAdd(first + column, one);
  if (second != nullptr) atomicAdd(second + column, two);
}

template <typename T>
__device__ void bias_gradient(const T* dy, float* gradient, long long rows, long long columns) {
  sum_columns(gradient, nullptr, rows, columns, [=](long long row, long long column, float& one, float&) {
    one += to_float(dy[row * columns + column]);
  });
}

// --- normalisation of rows ------------------------------------------------------------------------------

constexpr float kEpsilon = 1e-5F;

/// A row a block. `saved` has the mean and the inverse deviation of each row.
template <typename T>
__device__ void layer_norm_forward(const T* x, const float* scale, const float* shift, T* y, float* saved,
                                   long long width) {
  const long long row = blockIdx.x;
  x += row * width;
  y += row * width;
  float sum = 0;
  for (long long i = threadIdx.x; i < width; i += blockDim.x) sum += to_float(x[i]);
  const float mean = block_sum(sum) / static_cast<float>(width);
  float squares = 0;
  for (long long i = threadIdx.x; i < width; i += blockDim.x) {
    const float off = to_float(x[i]) - mean;
    squares += off * off;
  }
  const float inverse = rsqrtf(block_sum(squares) / static_cast<float>(width) + kEpsilon);
  for (long long i = threadIdx.x; i < width; i += blockDim.x)
    store(y[i], (to_float(x[i]) - mean) * inverse * scale[i] + shift[i]);
  if (threadIdx.x == 0) {
    saved[2 * row] = mean;
    saved[2 * row + 1] = inverse;
  }
}

template <typename T>
__device__ void layer_norm_backward(const T* x, const T* dy, const float* scale, const float* saved, T* dx,
                                    long long width) {
  const long long row = blockIdx.x;
  const float mean = saved[2 * row], inverse = saved[2 * row + 1];
  x += row * width;
  dy += row * width;
  dx += row * width;
  float sum = 0, product = 0;
  for (long long i = threadIdx.x; i < width; i += blockDim.x) {
    const float gradient = to_float(dy[i]) * scale[i];
    sum += gradient;
    product += gradient * (to_float(x[i]) - mean) * inverse;
  }
  sum = block_sum(sum) / static_cast<float>(width);
  product = block_sum(product) / static_cast<float>(width);
  for (long long i = threadIdx.x; i < width; i += blockDim.x) {
    const float normal = (to_float(x[i]) - mean) * inverse;
    store(dx[i], inverse * (to_float(dy[i]) * scale[i] - sum - normal * product));
  }
}

template <typename T>
__device__ void layer_norm_parameters(const T* x, const T* dy, const float* saved, float* scale_gradient,
                                      float* shift_gradient, long long rows, long long width) {
  sum_columns(scale_gradient, shift_gradient, rows, width,
              [=](long long row, long long column, float& one, float& two) {
                const float gradient = to_float(dy[row * width + column]);
                one += gradient * (to_float(x[row * width + column]) - saved[2 * row]) * saved[2 * row + 1];
                two += gradient;
              });
}

// --- embedding ------------------------------------------------------------------------------------------

/// Which word a row picks. A prime step: they are all over the table.
__device__ long long word_of(long long row, long long vocabulary) { return row * 7919 % vocabulary; }

/// A row a block.
template <typename T>
__device__ void embedding_forward(const float* table, T* y, long long vocabulary, long long width) {
  const float* from = table + word_of(blockIdx.x, vocabulary) * width;
  T* into = y + blockIdx.x * width;
  for (long long i = threadIdx.x; i < width; i += blockDim.x) store(into[i], from[i]);
}

template <typename T>
__device__ void embedding_backward(const T* dy, float* gradient, long long vocabulary, long long width) {
  float* into = gradient + word_of(blockIdx.x, vocabulary) * width;
  const T* from = dy + blockIdx.x * width;
  for (long long i = threadIdx.x; i < width; i += blockDim.x) atomicAdd(into + i, to_float(from[i]));
}

// --- values ---------------------------------------------------------------------------------------------

/// A number by its place alone (the finaliser of MurmurHash3), evenly in middle +- spread.
template <typename T>
__device__ void fill(T* data, long long count, float middle, float spread) {
  for (long long i = thread(); i < count; i += threads()) {
    unsigned value = static_cast<unsigned>(i) * 2654435761U + 1U;
    value = (value ^ (value >> 16)) * 0x85ebca6bU;
    value = (value ^ (value >> 13)) * 0xc2b2ae35U;
    value ^= value >> 16;
    const float even = static_cast<float>(value >> 8) * (1.0F / 8388608.0F) - 1.0F;  // 24 bits in -1 to 1
    store(data[i], middle + spread * even);
  }
}

}  // namespace

#define COMMTUNE_OF_BOTH(DEFINE) DEFINE(fp32, float) DEFINE(bf16, Bf16)

#define COMMTUNE_DEFINE(NAME, T)                                                                             \
  extern "C" __global__ void commtune_profile_activation_forward_##NAME(const T* x, T* y, long long count,   \
                                                                        long long which) {                   \
    activation_forward(x, y, count, static_cast<int>(which));                                                \
  }                                                                                                          \
  extern "C" __global__ void commtune_profile_activation_backward_##NAME(                                    \
      const T* x, const T* dy, T* dx, long long count, long long which) {                                    \
    activation_backward(x, dy, dx, count, static_cast<int>(which));                                          \
  }                                                                                                          \
  extern "C" __global__ void commtune_profile_addition_##NAME(const T* a, const T* b, T* y,                  \
                                                              long long count) {                             \
    addition(a, b, y, count);                                                                                \
  }                                                                                                          \
  extern "C" __global__ void commtune_profile_add_bias_##NAME(T* y, const float* bias, long long rows,       \
                                                              long long columns) {                           \
    add_bias(y, bias, rows, columns);                                                                        \
  }                                                                                                          \
  extern "C" __global__ void commtune_profile_bias_gradient_##NAME(const T* dy, float* gradient,             \
                                                                   long long rows, long long columns) {      \
    bias_gradient(dy, gradient, rows, columns);                                                              \
  }                                                                                                          \
  extern "C" __global__ void commtune_profile_layer_norm_forward_##NAME(                                     \
      const T* x, const float* scale, const float* shift, T* y, float* saved, long long width) {             \
    layer_norm_forward(x, scale, shift, y, saved, width);                                                    \
  }                                                                                                          \
  extern "C" __global__ void commtune_profile_layer_norm_backward_##NAME(                                    \
      const T* x, const T* dy, const float* scale, const float* saved, T* dx, long long width) {             \
    layer_norm_backward(x, dy, scale, saved, dx, width);                                                     \
  }                                                                                                          \
  extern "C" __global__ void commtune_profile_layer_norm_parameters_##NAME(                                  \
      const T* x, const T* dy, const float* saved, float* scale_gradient, float* shift_gradient,             \
      long long rows, long long width) {                                                                     \
    layer_norm_parameters(x, dy, saved, scale_gradient, shift_gradient, rows, width);                        \
  }                                                                                                          \
  extern "C" __global__ void commtune_profile_embedding_forward_##NAME(const float* table, T* y,             \
                                                                       long long vocabulary,                 \
                                                                       long long width) {                    \
    embedding_forward(table, y, vocabulary, width);                                                          \
  }                                                                                                          \
  extern "C" __global__ void commtune_profile_embedding_backward_##NAME(                                     \
      const T* dy, float* gradient, long long vocabulary, long long width) {                                 \
    embedding_backward(dy, gradient, vocabulary, width);                                                     \
  }                                                                                                          \
  extern "C" __global__ void commtune_profile_fill_##NAME(T* data, long long count, float middle,            \
                                                          float spread) {                                    \
    fill(data, count, middle, spread);                                                                       \
  }
COMMTUNE_OF_BOTH(COMMTUNE_DEFINE)

/// Momentum, as PyTorch's SGD: m = 0.9 m + g, w -= rate m.
extern "C" __global__ void commtune_profile_momentum(float* weights, const float* gradient, float* momentum,
                                                     long long count, float rate) {
  for (long long i = thread(); i < count; i += threads()) {
    const float value = 0.9F * momentum[i] + gradient[i];
    momentum[i] = value;
    weights[i] -= rate * value;
  }
}

/// Kingma and Ba, ICLR 2015, without the correction of the first steps, which is a factor of the rate.
extern "C" __global__ void commtune_profile_adam(float* weights, const float* gradient, float* first,
                                                 float* second, long long count, float rate) {
  for (long long i = thread(); i < count; i += threads()) {
    const float one = 0.9F * first[i] + 0.1F * gradient[i];
    const float two = 0.999F * second[i] + 0.001F * gradient[i] * gradient[i];
    first[i] = one;
    second[i] = two;
    weights[i] -= rate * one / (sqrtf(two) + 1e-8F);
  }
}
