"""The text of an exported CUDA program: allocate, copy in, launch, copy out, compare, free."""

from __future__ import annotations

WORDS = {
    *(
        "main",
        "data",
        "check",
        "wrong",
        "Buffer",
        "read_file",
        "differing",
        "too_far",
        "wide",
        "int",
        "float",
    ),
    *("double", "char", "bool", "long", "short", "unsigned", "signed", "new", "delete", "class"),
    *("const", "this", "template", "operator", "default", "switch", "case", "for", "if", "do"),
}
"""Names that no buffer may have."""

HEAD = r"""// {title}
//
//   make run      needs nvcc and a GPU
//
// Allocates, copies the inputs in, launches, copies the outputs out, compares them, frees.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "{source}"

// Every CUDA call goes through this: the one that fails is named, with its line.
#define CHECK(call)                                                                       \
  do {{                                                                                    \
    const cudaError_t status = (call);                                                    \
    if (status != cudaSuccess) {{                                                          \
      std::fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,              \
                   cudaGetErrorName(status), cudaGetErrorString(status));                 \
      std::exit(2);                                                                       \
    }}                                                                                     \
  }} while (0)

static std::vector<char> read_file(const std::string& name, size_t bytes) {{
  std::vector<char> content(bytes);
  const std::string path = "data/" + name;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file || std::fread(content.data(), 1, bytes, file) != bytes) {{
    std::fprintf(stderr, "%s: not there, or shorter than %zu bytes; run in the program's folder\n",
                 path.c_str(), bytes);
    std::exit(2);
  }}
  std::fclose(file);
  return content;
}}

// Memory on the device. It becomes whatever pointer a kernel declares.
struct Place {{
  char* start;
  template <class T>
  operator T*() const {{
    return reinterpret_cast<T*>(start);
  }}
}};

struct Buffer {{
  char* start = nullptr;
  size_t bytes;

  explicit Buffer(size_t bytes) : bytes(bytes) {{
    CHECK(cudaMalloc(&start, bytes ? bytes : 1));
    CHECK(cudaMemset(start, 0xFF, bytes));  // NaN in floating point: what is never written shows
  }}
  void fill(const char* file) {{
    const auto content = read_file(file, bytes);
    CHECK(cudaMemcpy(start, content.data(), bytes, cudaMemcpyHostToDevice));
  }}
  template <class T>
  std::vector<T> read() const {{
    std::vector<T> values(bytes / sizeof(T));
    CHECK(cudaMemcpy(values.data(), start, bytes, cudaMemcpyDeviceToHost));
    return values;
  }}
  Place at(size_t offset) const {{ return {{start + offset}}; }}
  template <class T>
  operator T*() const {{
    return reinterpret_cast<T*>(start);
  }}
  void release() {{ CHECK(cudaFree(start)); }}
}};

// Integers and booleans: exactly the expected ones. Returns how many are wrong.
template <class T>
static size_t differing(const Buffer& buffer, const char* name) {{
  const auto got = buffer.read<T>();
  const auto want = read_file(std::string(name) + "_expected.bin", buffer.bytes);
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i)
    if (std::memcmp(&got[i], want.data() + i * sizeof(T), sizeof(T)) != 0) {{
      if (!wrong) std::printf("%s: first wrong at %zu\n", name, i);
      ++wrong;
    }}
  return wrong;
}}

template <class T>
static double wide(T value) {{
  if constexpr (std::is_same_v<T, double>) return value;
  return static_cast<float>(value);  // exact for float and for the 16-bit formats
}}

// Floating point: within the error that rounding allows at each element; NaN where NaN belongs.
template <class T>
static size_t too_far(const Buffer& buffer, const char* name) {{
  const auto got = buffer.read<T>();
  const size_t n = got.size();
  const auto want = read_file(std::string(name) + "_expected.bin", n * sizeof(double));
  const auto most = read_file(std::string(name) + "_allowed.bin", n * sizeof(double));
  size_t wrong = 0, worst_at = 0;
  double worst = 0;
  for (size_t i = 0; i < n; ++i) {{
    double expected, allowed;
    std::memcpy(&expected, want.data() + i * sizeof(double), sizeof(double));
    std::memcpy(&allowed, most.data() + i * sizeof(double), sizeof(double));
    const double value = wide(got[i]);
    const bool same = value == expected || (std::isnan(value) && std::isnan(expected));
    const double share = same ? 0 : std::fabs(value - expected) / allowed;
    if (!(share <= 1)) {{  // written so that NaN is wrong
      if (!wrong)
        std::printf("%s: first wrong at %zu: %g, expected %g\n", name, i, value, expected);
      ++wrong;
    }}
    if (share > worst) worst = share, worst_at = i;
  }}
  std::printf("%s: worst error %.3g of what rounding allows, at %zu\n", name, worst, worst_at);
  return wrong;
}}

int main() {{
"""

MAKEFILE = """\
# make run: builds, runs, and says OK or what is wrong. ARCH=sm_80 for another GPU; the launches are
# those for {arch}: where other kernels serve another GPU, export for that.
ARCH ?= {arch}

main: main.cu
\tnvcc -arch=$(ARCH) -lineinfo {flags} -I. main.cu -o main

run: main
\t./main

.PHONY: run
"""


def makefile(arch: str, flags: list[str]) -> str:
    """`nvcc -arch=... -lineinfo main.cu` with the variant's own flags."""
    return MAKEFILE.format(arch=arch, flags=" ".join(flags))


def launch(kernel: str, grid: str, block: str, shared: int, args: str) -> str:
    """One launch as statements; more than 48 KiB of shared memory have to be asked for."""
    lines = []
    if shared > 48 * 1024:
        what = "cudaFuncAttributeMaxDynamicSharedMemorySize"
        lines.append(f"CHECK(cudaFuncSetAttribute({kernel}, {what}, {shared}));")
    lines.append(f"{kernel}<<<dim3({grid}), dim3({block}), {shared}>>>({args});")
    lines.append("CHECK(cudaGetLastError());")
    return "\n".join(f"  {line}" for line in lines)


def program(
    *,
    title: str,
    source: str,
    buffers: list[tuple[str, str, int, str]],
    launches: list[str],
    checks: list[tuple[str, str]],
) -> str:
    """main.cu. Buffers are (name, C++ type, elements, file of their content or empty)."""
    types = {name: kind for name, kind, _, _ in buffers}
    lines = ["  // allocate, and copy in"]
    for name, kind, count, content in buffers:
        lines.append(f"  Buffer {name}({count} * sizeof({kind}));")
        if content:
            lines.append(f'  {name}.fill("{content}");')
    lines += ["", "  // launch", *launches, "  CHECK(cudaDeviceSynchronize());", ""]
    lines += ["  // copy out, and compare", "  size_t wrong = 0;"]
    lines += [f'  wrong += {how}<{types[name]}>({name}, "{name}");' for name, how in checks]
    lines += ["", "  // free", *(f"  {name}.release();" for name, *_ in buffers)]
    lines += [
        '  if (wrong) std::printf("WRONG: %zu values\\n", wrong);',
        '  else std::printf("OK\\n");',
        "  return wrong ? 1 : 0;",
        "}",
        "",
    ]
    return HEAD.format(title=title, source=source) + "\n".join(lines)
