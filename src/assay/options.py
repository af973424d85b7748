"""Options of the command line that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Targets = Annotated[
    list[str],
    typer.Argument(metavar="TARGET...", help="An operator, file.py, file.py:name or package:name."),
]
Case = Annotated[str | None, typer.Option("--case", help="Only these: 'n=4096', 'n=256:1024:128'.")]
Dtype = Annotated[str | None, typer.Option("--dtype", help="Only these: float32,bfloat16.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:1.")]
Arch = Annotated[str, typer.Option("--arch", help="Compile for this, where no GPU says: sm_90.")]
Only = Annotated[
    list[str] | None, typer.Option("-k", help="Only this way or variant; may be a pattern.")
]
Budget = Annotated[str | None, typer.Option("--budget", help="Sampling time a case: 30s.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer samples.")]
Slow = Annotated[bool, typer.Option("--slow", help="Let interpreter and simulator take any time.")]
Require = Annotated[
    list[str] | None, typer.Option("--require", help="Fail if this way was not run.")
]
Json = Annotated[bool, typer.Option("--json", help="Print rows alone, one JSON object a line.")]
Seed = Annotated[int | None, typer.Option("--seed", help="The same inputs again.")]
Deadline = Annotated[str, typer.Option("--deadline", help="Longest run of one case: 30s.")]
Like = Annotated[
    str | None, typer.Option("--like", help="What a bare function computes: 'x.softmax(-1)'.")
]
Inputs = Annotated[
    list[str] | None, typer.Option("--input", help="One input of it: 'x=normal(4096, 8192)'.")
]
Fills = Annotated[bool, typer.Option("--fills", help="The function fills outputs given first.")]
One = Annotated[str, typer.Option("-k", help="The variant: way/name, 'way/name BLOCK=256'.")]
Zoo = Annotated[
    bool,
    typer.Option("--zoo/--no-zoo", help="Hostile inputs too: sizes, values, layouts."),
]
Drop = Annotated[
    bool,
    typer.Option("--drop-barriers", help="Without a GPU: which barriers a kernel needs."),
]
Sanitize = Annotated[
    bool, typer.Option("--sanitize", help="On a GPU: each kernel under compute-sanitizer's tools.")
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Judge and time it anew whenever its file is saved.")
]
Bench = Annotated[str | None, typer.Option("--kernelbench", help="File with Model and get_inputs.")]
CacheState = Annotated[
    str, typer.Option("--cache", help="Before each sample: cold, dirty, hot or rotated.")
]
