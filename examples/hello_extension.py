"""C++ in a string, called from Python: built once, then found again.

    python examples/hello_extension.py

The text becomes a module of its own: `std::string` arrives as a `str`. Run it twice: the second
start finds the build by its content. `assay cache inline --log` shows the commands and the binding.
"""

import assay

SOURCE = """
#include <string>

std::string hello_world() { return "Hello World!"; }

std::string greet(const std::string& name, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += (i ? " " : "") + ("Hello " + name + "!");
  return all;
}
"""

if __name__ == "__main__":
    module = assay.load_inline(SOURCE, ["hello_world", "greet"], verbose=True)
    print(module.hello_world())
    print(module.greet("kernel", 2))
