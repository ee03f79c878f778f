#include "extensions/text/vocab.h"

#include <mutex>

#include "core/budget.h"
#include "core/error.h"

namespace wick::text {

namespace {

constexpr const char* kVocabName = "Vocab";
constexpr const char* kVocabVersion = "0.0.2";

}  // namespace

Vocab::Vocab(std::vector<std::string> tokens, std::optional<int64_t> default_index)
    : default_index_(default_index) {
  memory_.add(kVocabName, 2 * HeldMemory::of(tokens));
  indices_.reserve(tokens.size());
  Pace pace;
  for (const std::string& token : tokens) {
    pace.step(16);
    WICK_CHECK(indices_.emplace(token, static_cast<int64_t>(indices_.size())).second,
               "Duplicate token found in tokens list: {}", token);
  }
  tokens_ = std::move(tokens);
}

int64_t Vocab::find(std::string_view token) const {
  const auto found = indices_.find(token);
  if (found != indices_.end()) return found->second;
  WICK_CHECK(default_index_, "Token {} not found and default index is not set", token);
  return *default_index_;
}

int64_t Vocab::size() const {
  std::shared_lock lock(*mutex_);
  return count();
}

bool Vocab::contains(std::string_view token) const {
  std::shared_lock lock(*mutex_);
  return indices_.contains(token);
}

int64_t Vocab::indexOf(std::string_view token) const {
  std::shared_lock lock(*mutex_);
  return find(token);
}

std::vector<int64_t> Vocab::indicesOf(const std::vector<std::string>& tokens) const {
  std::shared_lock lock(*mutex_);
  std::vector<int64_t> result;
  result.reserve(tokens.size());
  Pace pace;
  for (const std::string& token : tokens) {
    pace.step(16);
    result.push_back(find(token));
  }
  return result;
}

std::string Vocab::tokenAt(int64_t index) const {
  std::shared_lock lock(*mutex_);
  WICK_CHECK(index >= 0 && index < count(),
             "Specified index {} is out of bounds for vocab of size {}", index, count());
  return tokens_[static_cast<size_t>(index)];
}

std::vector<std::string> Vocab::tokensAt(const std::vector<int64_t>& indices) const {
  std::shared_lock lock(*mutex_);
  for (size_t i = 0; i < indices.size(); ++i) {
    WICK_CHECK(indices[i] >= 0 && indices[i] < count(),
               "Specified index {} at position {} is out of bounds for vocab of size {}",
               indices[i], i, count());
  }
  Texts result(kVocabName);
  Pace pace;
  for (int64_t index : indices) {
    pace.step(16);
    // A long token may be asked for often.
    result.push(tokens_[static_cast<size_t>(index)]);
  }
  return result.take();
}

std::vector<std::string> Vocab::tokens() const {
  std::shared_lock lock(*mutex_);
  checkAllocation(kVocabName, HeldMemory::of(tokens_));
  return tokens_;
}

IValue Vocab::indicesByToken() const {
  std::shared_lock lock(*mutex_);
  DictRef result = makeRef<DictObject>(types::String(), types::Int());
  Pace pace;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    pace.step(16);
    checkGrowth();
    result->set(IValue(tokens_[i]), IValue(static_cast<int64_t>(i)));
  }
  return IValue(std::move(result));
}

std::optional<int64_t> Vocab::defaultIndex() const {
  std::shared_lock lock(*mutex_);
  return default_index_;
}

void Vocab::setDefaultIndex(std::optional<int64_t> index) {
  std::unique_lock lock(*mutex_);
  default_index_ = index;
}

void Vocab::checkNew(const std::string& token) const {
  const auto found = indices_.find(token);
  WICK_CHECK(found == indices_.end(), "Token {} already exists in the Vocab with index: {}", token,
             found->second);
}

void Vocab::add(std::string token, int64_t index) {
  memory_.add(kVocabName, 2 * HeldMemory::of(token));
  const auto place = indices_.emplace(token, index).first;
  try {
    tokens_.insert(tokens_.begin() + index, std::move(token));
  } catch (...) {
    indices_.erase(place);
    throw;
  }
}

void Vocab::append(std::string token) {
  std::unique_lock lock(*mutex_);
  checkNew(token);
  add(std::move(token), count());
}

void Vocab::insert(std::string token, int64_t index) {
  std::unique_lock lock(*mutex_);
  WICK_CHECK(index >= 0 && index <= count(),
             "Specified index {} is out of bounds for vocab of size {}", index, count());
  checkNew(token);
  add(std::move(token), index);
  for (size_t i = static_cast<size_t>(index) + 1; i < tokens_.size(); ++i) {
    indices_.find(tokens_[i])->second = static_cast<int64_t>(i);
  }
}

IValue Vocab::state() const {
  std::shared_lock lock(*mutex_);
  std::vector<int64_t> numbers;
  if (default_index_) numbers.push_back(*default_index_);
  return detail::resultValue(
      std::tuple(std::string(kVocabVersion), numbers, tokens_, std::vector<Tensor>()));
}

Vocab Vocab::fromState(const IValue& state) {
  const std::vector<IValue>& parts = stateParts(kVocabName, state, 4);
  const auto version = parts[0].to<std::string>();
  const auto numbers = parts[1].to<std::vector<int64_t>>();
  WICK_CHECK(parts[3].to<std::vector<Tensor>>().empty(), "Expected `tensors` states to be empty");
  WICK_CHECK(version >= kVocabVersion, "Found unexpected version for serialized Vocab: {}",
             version);
  return Vocab(parts[2].to<std::vector<std::string>>(),
               numbers.empty() ? std::optional<int64_t>() : numbers[0]);
}

void defineVocab(Extension& extension) {
  extension.object<Vocab>(kVocabName)
      .init<std::vector<std::string>, std::optional<int64_t>>()
      .def("__contains__",
           [](const Vocab& v, const std::string& token) { return v.contains(token); })
      .def("__getitem__", [](const Vocab& v, const std::string& token) { return v.indexOf(token); })
      .def("insert_token", &Vocab::insert)
      .def("__len__", &Vocab::size)
      .def("set_default_index", &Vocab::setDefaultIndex)
      .def("get_default_index", &Vocab::defaultIndex)
      .def("append_token", &Vocab::append)
      .def("lookup_token", &Vocab::tokenAt)
      .def("lookup_tokens", &Vocab::tokensAt)
      .def("lookup_indices", &Vocab::indicesOf)
      .def("get_stoi() -> Dict(str, int)", &Vocab::indicesByToken)
      .def("get_itos", &Vocab::tokens)
      .pickle(&Vocab::state, &Vocab::fromState);
}

}  // namespace wick::text
