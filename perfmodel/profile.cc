#include "perfmodel/profile.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "perfmodel/digest.h"
#include "perfmodel/error.h"
#include "perfmodel/json_reader.h"
#include "perfmodel/tensor_limits.h"

namespace commtune {

namespace {

// Bounds that keep every sum within 64 bits, as those of a tensor do.
constexpr std::size_t kMostLayers = 1'000'000;
constexpr std::uint64_t kLargestBatch = 1'000'000'000;
constexpr double kLongestLayer = 1e6;  // seconds
constexpr double kMostMacs = 1e18;

constexpr std::string_view kProfileFormat = "commtune/profile/1";
constexpr std::string_view kLayout = "commtune/layout/1";
constexpr std::pair<std::string_view, DataType> kDataTypes[] = {
    {"float32", DataType::kFloat32}, {"float16", DataType::kFloat16}, {"bfloat16", DataType::kBfloat16}};

Seconds sum_of(const std::vector<Layer>& layers, Seconds Layer::*time) {
  Seconds total{0};
  for (const Layer& layer : layers) {
    total += layer.*time;
  }
  return total;
}

ProfileOrigin read_origin(const JsonPlace& place) {
  place.expect_keys({"how", "device", "source", "note"});
  ProfileOrigin origin;
  const JsonPlace how = place["how"];
  origin.how = how.name();
  if (origin.how != "measured" && origin.how != "derived" && origin.how != "published") {
    how.fail(R"(one of "measured", "derived", "published")");
  }
  const auto text = [&](std::string_view key) {
    const auto found = place.find(key);
    return found ? found->text() : std::string();
  };
  origin.device = text("device");
  origin.source = text("source");
  origin.note = text("note");
  return origin;
}

Tensor read_tensor(const JsonPlace& place, Bytes element) {
  place.expect_keys({"name", "bytes"});
  const JsonPlace name = place["name"];
  const JsonPlace bytes = place["bytes"];
  Tensor tensor{name.name(), Bytes{bytes.integer(1, kLargestTensor)}};
  if (tensor.bytes.count % element.count != 0) {
    bytes.fail("a multiple of the element size " + std::to_string(element.count));
  }
  return tensor;
}

Seconds read_time(const JsonPlace& place) { return Seconds{place.number(0, kLongestLayer)}; }

Layer read_layer(const JsonPlace& place, Bytes element) {
  place.expect_keys(
      {"name", "forward_seconds", "backward_seconds", "update_seconds", "macs_per_sample", "tensors"});
  Layer layer;
  const JsonPlace name = place["name"];
  layer.name = name.name();
  const JsonPlace forward = place["forward_seconds"];
  layer.forward = read_time(forward);
  const JsonPlace backward = place["backward_seconds"];
  layer.backward = read_time(backward);
  if (const auto update = place.find("update_seconds")) {
    layer.update = read_time(*update);
  }
  if (const auto macs = place.find("macs_per_sample")) {
    layer.macs_per_sample = macs->number(0, kMostMacs);
  }
  if (const auto tensors = place.find("tensors")) {
    const std::size_t count = tensors->size(0, kMostTensors);
    layer.tensors.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const JsonPlace tensor = (*tensors)[i];
      layer.tensors.push_back(read_tensor(tensor, element));
    }
  }
  return layer;
}

nlohmann::json layer_json(const Layer& layer) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const Tensor& tensor : layer.tensors) {
    tensors.push_back({{"name", tensor.name}, {"bytes", tensor.bytes.count}});
  }
  return {{"name", layer.name},
          {"forward_seconds", layer.forward.count()},
          {"backward_seconds", layer.backward.count()},
          {"update_seconds", layer.update.count()},
          {"macs_per_sample", layer.macs_per_sample},
          {"tensors", std::move(tensors)}};
}

Bytes scaled_bytes(const Tensor& tensor, double factor, Bytes element) {
  const std::uint64_t elements = tensor.bytes.count / element.count;
  const std::uint64_t largest = kLargestTensor / element.count;
  const double rounded = std::max(1.0, std::round(static_cast<double>(elements) * factor));
  if (!(rounded <= static_cast<double>(largest))) {
    throw Error(ErrorCode::kBadInput, "bytes_factor = " + nlohmann::json(factor).dump() + ": makes tensor " +
                                          tensor.name + " larger than " + format_size({kLargestTensor}));
  }
  return {static_cast<std::uint64_t>(rounded) * element.count};
}

Seconds scaled_time(Seconds time, double factor) {
  const Seconds result = time * factor;
  if (!(result.count() <= kLongestLayer)) {
    throw Error(ErrorCode::kBadInput, "time_factor = " + nlohmann::json(factor).dump() +
                                          ": makes a layer longer than " +
                                          format_time(Seconds{kLongestLayer}));
  }
  return result;
}

void check_factor(const char* name, double factor) {
  if (!(factor > 0 && std::isfinite(factor))) {
    throw Error(ErrorCode::kBadInput,
                std::string(name) + " = " + std::to_string(factor) + ": must be positive and finite");
  }
}

}  // namespace

Bytes element_size(DataType type) { return type == DataType::kFloat32 ? 4_B : 2_B; }

std::string to_string(DataType type) { return enum_name(type, kDataTypes); }

Seconds Profile::forward() const { return sum_of(layers, &Layer::forward); }
Seconds Profile::backward() const { return sum_of(layers, &Layer::backward); }
Seconds Profile::update() const { return sum_of(layers, &Layer::update); }

Bytes Profile::gradient_bytes() const {
  Bytes total;
  for (const Layer& layer : layers) {
    for (const Tensor& tensor : layer.tensors) {
      total += tensor.bytes;
    }
  }
  return total;
}

std::size_t Profile::tensor_count() const {
  std::size_t count = 0;
  for (const Layer& layer : layers) {
    count += layer.tensors.size();
  }
  return count;
}

std::vector<TensorRef> tensors_of(const Profile& profile) {
  std::vector<TensorRef> refs;
  refs.reserve(profile.tensor_count());
  for (std::uint32_t l = 0; l < profile.layers.size(); ++l) {
    for (const Tensor& tensor : profile.layers[l].tensors) {
      refs.push_back({l, tensor.bytes});
    }
  }
  return refs;
}

Profile scaled(const Profile& profile, double bytes_factor, double time_factor) {
  check_factor("bytes_factor", bytes_factor);
  check_factor("time_factor", time_factor);
  const Bytes element = element_size(profile.type);
  Profile result = profile;
  for (Layer& layer : result.layers) {
    layer.forward = scaled_time(layer.forward, time_factor);
    layer.backward = scaled_time(layer.backward, time_factor);
    layer.update = scaled_time(layer.update, time_factor);
    for (Tensor& tensor : layer.tensors) {
      tensor.bytes = scaled_bytes(tensor, bytes_factor, element);
    }
  }
  result.origin.note += (result.origin.note.empty() ? "" : " ") + std::string("Scaled: bytes by ") +
                        nlohmann::json(bytes_factor).dump() + ", times by " +
                        nlohmann::json(time_factor).dump() + ".";
  return result;
}

Profile profile_from_json(const nlohmann::json& json) {
  const JsonPlace document(json);
  document.object();
  document.expect_format(kProfileFormat);
  document.expect_keys({"format", "model", "batch", "data_type", "origin", "layers"});
  Profile profile;
  const JsonPlace model = document["model"];
  profile.model = model.name();
  const JsonPlace batch = document["batch"];
  profile.batch = static_cast<int>(batch.integer(1, kLargestBatch));
  const JsonPlace type = document["data_type"];
  profile.type = read_enum(type, kDataTypes);
  const JsonPlace origin = document["origin"];
  profile.origin = read_origin(origin);

  const JsonPlace layers = document["layers"];
  const std::size_t count = layers.size(1, kMostLayers);
  profile.layers.reserve(count);
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const JsonPlace layer = layers[i];
    profile.layers.push_back(read_layer(layer, element_size(profile.type)));
    tensors += profile.layers.back().tensors.size();
    if (tensors > kMostTensors) {
      layer.fail_because("more than " + std::to_string(kMostTensors) + " tensors in the profile");
    }
  }
  return profile;
}

nlohmann::json to_json(const Profile& profile) {
  nlohmann::json layers = nlohmann::json::array();
  for (const Layer& layer : profile.layers) {
    layers.push_back(layer_json(layer));
  }
  return {{"format", kProfileFormat},
          {"model", profile.model},
          {"batch", profile.batch},
          {"data_type", to_string(profile.type)},
          {"origin",
           {{"how", profile.origin.how},
            {"device", profile.origin.device},
            {"source", profile.origin.source},
            {"note", profile.origin.note}}},
          {"layers", std::move(layers)}};
}

std::string digest(const Profile& profile) {
  Digest digest;
  digest.add(kProfileFormat).add(profile.batch).add(to_string(profile.type));
  digest.add(static_cast<std::uint64_t>(profile.layers.size()));
  for (const Layer& layer : profile.layers) {
    digest.add(layer.forward.count()).add(layer.backward.count()).add(layer.update.count());
    digest.add(static_cast<std::uint64_t>(layer.tensors.size()));
    for (const Tensor& tensor : layer.tensors) {
      digest.add(tensor.bytes.count);
    }
  }
  return digest.hex();
}

std::string layout_digest(const Profile& profile) {
  Digest digest;
  digest.add(kLayout).add(to_string(profile.type)).add(static_cast<std::uint64_t>(profile.tensor_count()));
  for (const Layer& layer : profile.layers) {
    for (const Tensor& tensor : layer.tensors) {
      digest.add(tensor.name).add(tensor.bytes.count);
    }
  }
  return digest.hex();
}

}  // namespace commtune
