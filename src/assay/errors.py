"""The user's mistakes, as exceptions. A kernel's fault is never one of these: it is a verdict."""


class AssayError(Exception):
    """What was done, what was wrong, and what to do, in one message. The command line exits 2."""


class TargetError(AssayError):
    """A TARGET, or the file behind it, that gives no operator."""


class OpError(AssayError):
    """An Op, a case or a variant that is declared wrongly."""


class RowsError(AssayError):
    """Saved rows that cannot be read."""


class BuildError(Exception):
    """A source that did not build: the kernel's fault, turned into the verdict `did not build`.

    `first` is the compiler's first error as `file:line:col: error: ...`; `log` is everything the
    compiler said.
    """

    def __init__(self, first: str, log: str = ""):
        super().__init__(first)
        self.first, self.log = first, log


class LaunchError(Exception):
    """A launch refused before the kernel ran: the verdict `did not launch`."""


class NotRun(Exception):
    """What can't run here, and why: the row is `absent` with this reason, not a failure."""


class NotSupported(Exception):
    """Raised by a kernel, before its launch, for an input that it does not take.

    On an input that the Op does not promise (`supports`) this is the pass `refused`; on one that
    it promises it is the failure `not supported`.
    """
