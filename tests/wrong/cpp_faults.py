"""C++ behind a plain C interface: what it keeps between calls, how it dies, what does not build."""

import assay

OPTIONS = {"deadline": 2.0}
EXPECT = {
    "cpp/first_answer_for_ever": ("stale answer", "returned the answer of the call before"),
    "cpp/counts_its_calls": ("not the same twice", "right at first, then with the same inputs"),
    "cpp/aborts": ("crashed", "SIGABRT"),
    "cpp/null": ("crashed", "SIGSEGV"),
    "cpp/hangs": ("timed out", "no answer after 2 s (run)"),
    "cpp/one_too_many": ("wrote outside", "1 value after the end of output 0"),
    "cpp/one_too_few": ("not written", "1 of 100 elements of output 0, first at [99]"),
    "cpp/scratch_in_its_input": ("changed its input", "x, not declared as mutated"),
    "cpp/rounds_to_bfloat16": ("lower precision", "looks like bfloat16, declared float32"),
    "cpp/sums_in_bfloat16": ("wrong value", "element"),
    "cpp/library_that_is_gone": ("did not build", "nvToolsExt"),
    "cpp/read_before_it_is_set": ("did not build", "uninitialized"),
    "cpp/no_such_function": ("did not launch", "exports no function 'no_such'"),
}
IDS = {
    "cpp/first_answer_for_ever": "V17",
    "cpp/counts_its_calls": "V14 V16",
    "cpp/one_too_many": "V12",
    "cpp/one_too_few": "V10",
    "cpp/scratch_in_its_input": "V13 O3",
    "cpp/rounds_to_bfloat16": "V20",
    "cpp/sums_in_bfloat16": "V21",
    "cpp/library_that_is_gone": "X39 B13",
    "cpp/read_before_it_is_set": "X40 X17",
    "cpp/hangs": "L8",
    "cpp/null": "L7",
}
TWIN = {
    "cpp/first_answer_for_ever": "cpp/right",
    "cpp/counts_its_calls": "cpp/right",
    "cpp/aborts": "cpp/right",
    "cpp/null": "cpp/right",
    "cpp/hangs": "cpp/right",
    "cpp/one_too_many": "cpp/right",
    "cpp/one_too_few": "cpp/right",
    "cpp/scratch_in_its_input": "cpp/right",
    "cpp/rounds_to_bfloat16": "cpp/right",
    "cpp/sums_in_bfloat16": "cpp/in_order",
    "cpp/library_that_is_gone": "cpp/right",
    "cpp/read_before_it_is_set": "cpp/right",
    "cpp/no_such_function": "cpp/right",
}

DOUBLE = r"""
#include <cstdlib>
#include <cstring>

static float rounded(float v) { return v; }

extern "C" void twice(float* y, float* x, int n) {
    for (int i = 0; i < n; i++) y[i] = 2 * rounded(x[i]);
}
"""
LOOP = "for (int i = 0; i < n; i++) y[i] = 2 * rounded(x[i]);"


def inputs(make, n):
    return (make.uniform(n, low=1.0, high=2.0),)


op = assay.Op("doubled_by_cpp", lambda x: 2 * x, inputs, cases=assay.grid(n=[100]))


def variant(name, text, flags=(), call="twice"):
    @op.launcher(f"cpp/{name}", source=text, flags=flags)
    def launch(k, y, x):
        getattr(k, call)(y, x, x.numel())


KEPT = LOOP.replace("y[i] =", "kept[i] = kept[i] ? kept[i] :") + " std::memcpy(y, kept, 4 * n);"
COUNTED = LOOP.replace("2 *", "(calls > 2 ? 3 : 2) *")
BFLOAT16 = "unsigned u; std::memcpy(&u, &v, 4); u &= 0xffff0000u; std::memcpy(&v, &u, 4); return v;"
variant("right", DOUBLE)
variant("first_answer_for_ever", DOUBLE.replace(LOOP, "static float kept[9999]; " + KEPT))
variant("counts_its_calls", DOUBLE.replace(LOOP, "static int calls; calls++; " + COUNTED))
variant("aborts", DOUBLE.replace(LOOP, "std::abort();"))
variant("null", DOUBLE.replace("y[i] =", "*(volatile float*)nullptr ="))
variant("hangs", DOUBLE.replace(LOOP, "for (volatile int go = 1; go;) {}"))
variant("one_too_many", DOUBLE.replace("i < n; i++) y[i]", "i <= n; i++) y[i]"))
variant("one_too_few", DOUBLE.replace("i < n; i++) y[i]", "i < n - 1; i++) y[i]"))
variant("scratch_in_its_input", DOUBLE.replace("2 * rounded(x[i])", "x[i] *= 2"))
variant("rounds_to_bfloat16", DOUBLE.replace("return v;", BFLOAT16))
variant("library_that_is_gone", DOUBLE, flags=("-lnvToolsExt",))
variant(
    "read_before_it_is_set", DOUBLE.replace(LOOP, "int chosen; *y = rounded(chosen);"), "-Werror"
)
variant("no_such_function", DOUBLE, call="no_such")

SUM = r"""
#include <cstring>

static float kept(float v) { return v; }

extern "C" void sum(float* y, const float* x, int n) {
    float total = 0;
    for (int i = 0; i < n; i++) total = kept(total + x[i]);
    *y = total;
}
"""


def ones(make, n):
    return (make.uniform(n, low=1.0, high=1.5),)


sums = assay.Op("summed_by_cpp", lambda x: x.sum(), ones, cases=assay.grid(n=[257, 4096]))


def summed(name, text):
    @sums.launcher(f"cpp/{name}", source=text)
    def launch(k, y, x):
        k.sum(y, x, x.numel())


summed("in_order", SUM)
summed("sums_in_bfloat16", SUM.replace("return v;", BFLOAT16))
