#pragma once
// What a model asks of the network: its layers in forward order, how long each computes, and the gradient
// tensors that each one produces. File format "commtune/profile/1".

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "perfmodel/base/units.h"

namespace commtune {

enum class DataType { kFloat32, kFloat16, kBfloat16 };

Bytes element_size(DataType type);
std::string to_string(DataType type);  ///< "float32", "float16", "bfloat16"

/// One gradient tensor: what a single all-reduce, or push and pull, would carry if nothing were fused or cut.
struct Tensor {
  std::string name;  ///< the framework's own parameter name, for example "layer1.0.conv1.weight"
  Bytes bytes;       ///< a positive multiple of the profile's element size
};

struct Layer {
  std::string name;
  Seconds forward{};   ///< f_i of MODEL.md section 3.1
  Seconds backward{};  ///< b_i
  Seconds update{};    ///< u_i: the optimizer's step, between its gradient's return and its forward pass
  std::vector<Tensor> tensors;  ///< may be empty (activations, pooling)
  double macs_per_sample = 0;   ///< multiply-adds of the forward pass for one sample; 0 when unknown
};

/// Where a profile's times come from. A time that nobody measured says "derived" and how.
struct ProfileOrigin {
  std::string how;     ///< "measured", "derived" or "published"
  std::string device;  ///< "RTX 2080 Ti, fp32"; empty when the source does not name it
  std::string source;  ///< citation
  std::string note;    ///< what to be careful about
};

struct Profile {
  std::string model;  ///< "resnet50"
  int batch = 1;      ///< samples a worker processes in one iteration; 0: not known
  DataType type = DataType::kFloat32;
  ProfileOrigin origin;
  std::vector<Layer> layers;  ///< forward order; at least one

  Seconds forward() const;   ///< F = sum of f_i
  Seconds backward() const;  ///< B = sum of b_i
  Seconds update() const;    ///< U = sum of u_i
  Bytes gradient_bytes() const;
  std::size_t tensor_count() const;
};

/// Index of a tensor: its position when all layers' tensors are listed in forward order, 0-based.
using TensorId = std::uint32_t;

/// A tensor together with the layer that owns it, in TensorId order.
struct TensorRef {
  std::uint32_t layer;  ///< index into Profile::layers
  Bytes bytes;
};
std::vector<TensorRef> tensors_of(const Profile& profile);

/// The same model with every tensor's bytes multiplied by bytes_factor (rounded to whole elements, at least
/// one) and every time by time_factor; the origin's note states both. Throws Error{kBadInput} unless both are
/// positive.
Profile scaled(const Profile& profile, double bytes_factor, double time_factor);

/// Reads "commtune/profile/1". Throws Error{kBadInput} with the JSON path of the first offending value and
/// the rule, for example `layers[12].tensors[0].bytes: expected a positive integer, got -4`.
Profile profile_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Profile& profile);

/// 16 hexadecimal digits over what the network sees (layers' times, tensors' sizes, type, batch). Equal
/// profiles have equal digests on every machine.
std::string digest(const Profile& profile);

/// 16 hexadecimal digits over what must travel: the tensors' names and sizes in their order, and the type of
/// their elements. Layers' times and the batch do not enter it, so a model that is timed again keeps it.
std::string layout_digest(const Profile& profile);

}  // namespace commtune
