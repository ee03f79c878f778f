// The functions of `itertools`.
#include <fmt/format.h>

#include <algorithm>

#include "capture/evaluate/capture.h"
#include "capture/evaluate/handlers.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/instance.h"
#include "capture/values/lazy_iterators.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

constexpr size_t kMostIndices = 1'000'000;  // of all elements of the pools

bool isNone(Capture& capture, Variable* variable) {
  return capture.use(variable)->type() == Py_TYPE(Py_None);
}

// Calls the class with constants for the exceptions that it raises.
void checkConcretely(Capture& capture, PyObject* type, const Arguments& given) {
  std::vector<PyObject*> objects;
  for (Variable* each : given.positional) objects.push_back(each->constant());
  capture.concretely([&] {
    return Object::checked(PyObject_Vectorcall(type, objects.data(), objects.size(), nullptr));
  });
}

Variable* countFrom(Capture& capture, const Arguments& given) {
  if (given.positional.size() > 2 || !onlyKeywords(given, {"start", "step"})) return nullptr;
  Variable* start = argument(given, 0, "start");
  Variable* step = argument(given, 1, "step");
  if (!start) start = capture.constantLong(0);
  if (!step) step = capture.constantLong(1);
  for (Variable* each : {start, step}) {
    PyObject* const number = capture.use(each)->constant();
    if (!number || !PyNumber_Check(number)) return nullptr;
  }
  return capture.make<CountIterator>(start, step);
}

Variable* cycleOf(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1) return nullptr;
  return capture.make<CycleIterator>(iterate_(capture, given.positional[0]));
}

Variable* repeatOf(Capture& capture, const Arguments& given) {
  if (given.positional.size() > 2 || !onlyKeywords(given, {"object", "times"})) return nullptr;
  Variable* const element = argument(given, 0, "object");
  Variable* const times = argument(given, 1, "times");
  if (!element) return nullptr;
  return capture.make<RepeatIterator>(element,
                                      times ? std::max<int64_t>(integerOf(capture, times), 0) : -1);
}

Variable* sliceOfIterator(Capture& capture, const Arguments& given) {
  const size_t count = argumentCount(given);
  if (count < 2 || count > 4) return nullptr;
  // The class itself checks the bounds.
  Arguments checked{{capture.constant(Object::checked(PyTuple_New(0)).get())}, {}};
  for (size_t i = 1; i < count; ++i) {
    if (!capture.use(given.positional[i])->constant()) return nullptr;
    checked.positional.push_back(given.positional[i]);
  }
  checkConcretely(capture, libraryObject("itertools", "islice"), checked);
  // A bound that is None is the default.
  const auto bound = [&](size_t index, int64_t otherwise) {
    if (index >= count || isNone(capture, given.positional[index])) return otherwise;
    return integerOf(capture, given.positional[index]);
  };
  const int64_t start = count == 2 ? 0 : bound(1, 0);
  const int64_t stop = bound(count == 2 ? 1 : 2, -1);
  const int64_t step = bound(3, 1);
  return capture.make<SliceIterator>(iterate_(capture, given.positional[0]), start, stop, step);
}

Variable* accumulate(Capture& capture, const Arguments& given) {
  if (given.positional.size() > 2 || !onlyKeywords(given, {"iterable", "func", "initial"})) {
    return nullptr;
  }
  Variable* const iterable = argument(given, 0, "iterable");
  if (!iterable) return nullptr;
  const auto orNull = [&](Variable* variable) {
    return variable && isNone(capture, variable) ? nullptr : variable;
  };
  return capture.make<AccumulateIterator>(iterate_(capture, iterable),
                                          orNull(argument(given, 1, "func")),
                                          orNull(keyword(given, "initial")));
}

template <SelectingIterator::Kind kKind>
Variable* selecting(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  return capture.make<SelectingIterator>(kKind, given.positional[0],
                                         iterate_(capture, given.positional[1]));
}

Variable* compress(Capture& capture, const Arguments& given) {
  if (given.positional.size() > 2 || !onlyKeywords(given, {"data", "selectors"})) return nullptr;
  Variable* const data = argument(given, 0, "data");
  Variable* const selectors = argument(given, 1, "selectors");
  if (!data || !selectors) return nullptr;
  Variable* const elements = iterate_(capture, data);
  return capture.make<CompressIterator>(elements, iterate_(capture, selectors));
}

Variable* pairwise(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1) return nullptr;
  return capture.make<PairwiseIterator>(iterate_(capture, given.positional[0]));
}

Variable* zipLongest(Capture& capture, const Arguments& given) {
  if (!onlyKeywords(given, {"fillvalue"})) return nullptr;
  Variable* const fill = keyword(given, "fillvalue");
  std::vector<Variable*> iterators;
  for (Variable* each : given.positional) iterators.push_back(iterate_(capture, each));
  return capture.make<ZipLongestIterator>(std::move(iterators),
                                          fill ? fill : capture.constant(Py_None));
}

Variable* chain(Capture& capture, const Arguments& given) {
  if (!given.keywords.empty()) return nullptr;
  auto* const all = capture.make<TupleVariable>(given.positional, &PyTuple_Type);
  return capture.make<ChainIterator>(iterate_(capture, all));
}

Variable* chainOfIterable(Capture& capture, const Arguments& given) {
  // The class comes first: it is a class method.
  if (argumentCount(given) != 2) return nullptr;
  return capture.make<ChainIterator>(iterate_(capture, given.positional[1]));
}

Variable* groupBy(Capture& capture, const Arguments& given) {
  if (given.positional.size() > 2 || !onlyKeywords(given, {"iterable", "key"})) return nullptr;
  Variable* const iterable = argument(given, 0, "iterable");
  Variable* const key = argument(given, 1, "key");
  if (!iterable) return nullptr;
  return capture.make<GroupByIterator>(iterate_(capture, iterable),
                                       key && isNone(capture, key) ? nullptr : key);
}

Variable* tee(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1 && argumentCount(given) != 2) return nullptr;
  const int64_t count = argumentCount(given) == 2 ? integerOf(capture, given.positional[1]) : 2;
  if (count < 0) capture.raise(PyExc_ValueError, "n must be >= 0");
  constexpr int64_t kMost = 1000;
  if (count > kMost) return nullptr;
  std::vector<Variable*> all;
  if (count > 0) {
    Variable* const iterator = iterate_(capture, given.positional[0]);
    // An object of Python may know how to copy itself.
    if (dynamic_cast<InstanceVariable*>(capture.use(iterator))) return nullptr;
    auto* first = dynamic_cast<TeeIterator*>(iterator);
    if (!first) {
      first = capture.make<TeeIterator>(
          std::make_shared<TeeIterator::Shared>(TeeIterator::Shared{iterator, {}}), size_t{0});
    }
    all.push_back(first);
    while (static_cast<int64_t>(all.size()) < count) all.push_back(first->copy(capture));
  }
  return capture.make<TupleVariable>(std::move(all), &PyTuple_Type);
}

// ---- tuples of elements of pools ----

Object indicesOf(size_t count) {
  return Object::checked(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "n",
                                               static_cast<Py_ssize_t>(count)));
}

// Makes the iterator over numbers, whose checks of arguments are the program's.
Variable* overPools(Capture& capture, const char* name, std::vector<std::vector<Variable*>> pools,
                    Variable* option) {
  Object number;
  if (option) {
    PyObject* const constant = capture.use(option)->constant();
    if (!constant)
      breakGraph(fmt::format("itertools.{}() with a number that is no constant", name));
    number = Object::share(constant);
  }
  const bool product = std::string_view(name) == "product";
  Object arguments = Object::checked(PyTuple_New(0));
  size_t total = 0;
  const auto add = [&](const Object& object) {
    const Object one = Object::checked(PyTuple_Pack(1, object.get()));
    arguments = Object::checked(PySequence_Concat(arguments.get(), one.get()));
  };
  for (const auto& pool : pools) {
    total += pool.size();
    if (total > kMostIndices) breakGraph("a million elements in pools");
    add(indicesOf(pool.size()));
  }
  Object names;
  if (number && product) {
    names = Object::checked(PyDict_New());
    if (PyDict_SetItemString(names.get(), "repeat", number.get()) < 0) throw PythonError();
  } else if (number) {
    add(number);
  }
  return capture.concretely([&] {
    Object made = Object::checked(
        PyObject_Call(libraryObject("itertools", name), arguments.get(), names.get()));
    return capture.make<PoolIterator>(name, std::move(made), std::move(pools));
  });
}

Variable* product(Capture& capture, const Arguments& given) {
  if (!onlyKeywords(given, {"repeat"})) return nullptr;
  std::vector<std::vector<Variable*>> pools;
  for (Variable* each : given.positional) pools.push_back(elementsOf(capture, each));
  return overPools(capture, "product", std::move(pools), keyword(given, "repeat"));
}

constexpr char kPermutations[] = "permutations", kCombinations[] = "combinations",
               kWithReplacement[] = "combinations_with_replacement";

template <const char* kName>
Variable* arrangements(Capture& capture, const Arguments& given) {
  if (given.positional.size() > 2 || !onlyKeywords(given, {"iterable", "r"})) return nullptr;
  Variable* const iterable = argument(given, 0, "iterable");
  Variable* const length = argument(given, 1, "r");
  if (!iterable || (!length && kName != kPermutations)) return nullptr;
  return overPools(capture, kName, {elementsOf(capture, iterable)}, length);
}

}  // namespace

void addIterators(Handlers& handlers) {
  using Kind = SelectingIterator::Kind;
  const auto add = [&](const char* name, Handler handler) {
    addFrom(handlers, "itertools", name, handler);
  };
  add("count", countFrom);
  add("cycle", cycleOf);
  add("repeat", repeatOf);
  add("islice", sliceOfIterator);
  add("accumulate", accumulate);
  add("takewhile", selecting<Kind::kTakeWhile>);
  add("dropwhile", selecting<Kind::kDropWhile>);
  add("filterfalse", selecting<Kind::kFilterFalse>);
  add("starmap", selecting<Kind::kStarMap>);
  add("compress", compress);
  add("pairwise", pairwise);
  add("zip_longest", zipLongest);
  add("chain", chain);
  add("groupby", groupBy);
  add("tee", tee);
  add("product", product);
  add("permutations", arrangements<kPermutations>);
  add("combinations", arrangements<kCombinations>);
  add("combinations_with_replacement", arrangements<kWithReplacement>);
  auto* const type = reinterpret_cast<PyTypeObject*>(libraryObject("itertools", "chain"));
  addMethod(handlers, type, "from_iterable", chainOfIterable);
}

}  // namespace wick::capture
