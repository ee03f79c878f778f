-- The same as classify.cpp through the C interface: luajit classify.lua LIBRARY MODEL
local ffi = require("ffi")
ffi.cdef [[
typedef struct wick_module wick_module;
typedef struct wick_value wick_value;
typedef struct { size_t struct_size; int status; const char *message, *class_name, *file; size_t line, column; } wick_error;
typedef struct { size_t struct_size; int dtype; size_t dims; const int64_t *sizes, *strides; void *data; int contiguous; } wick_tensor;
const wick_error* wick_last_error(void);
int wick_module_load(const char* path, const void* limits, wick_module** module);
int wick_module_set_training(wick_module* module, int on);
int wick_module_call(const wick_module* module, const char* method, wick_value* const* arguments,
                     size_t num_arguments, const wick_value* named, const void* limits, wick_value** result);
int wick_value_from_data(int dtype, const int64_t* sizes, size_t dims, const void* data, size_t bytes,
                         wick_value** value);
int wick_value_to_tensor(const wick_value* value, wick_tensor* tensor);
void wick_value_free(wick_value* value);
void wick_module_free(wick_module* module);
]]
local wick = ffi.load(arg[1])
local function check(status)
  if status ~= 0 then error(ffi.string(wick.wick_last_error().message)) end
end

local pixels = ffi.new("float[784]")
for y = 5, 22 do
  for x = 12, 14 do pixels[y * 28 + x] = 1 end
end

local FLOAT32 = 6
local model, image, scores = ffi.new("wick_module*[1]"), ffi.new("wick_value*[1]"), ffi.new("wick_value*[1]")
local row = ffi.new("wick_tensor")
row.struct_size = ffi.sizeof("wick_tensor")
check(wick.wick_module_load(arg[2], nil, model))
check(wick.wick_module_set_training(model[0], 0))
check(wick.wick_value_from_data(FLOAT32, ffi.new("int64_t[4]", 1, 1, 28, 28), 4, pixels, ffi.sizeof(pixels), image))
check(wick.wick_module_call(model[0], nil, image, 1, nil, nil, scores))
check(wick.wick_value_to_tensor(scores[0], row))
local numbers, best = ffi.cast("float*", row.data), 0
for i = 1, 9 do if numbers[i] > numbers[best] then best = i end end
print(best)
wick.wick_value_free(scores[0])
wick.wick_value_free(image[0])
wick.wick_module_free(model[0])
