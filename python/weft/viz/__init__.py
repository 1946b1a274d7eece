"""The page: what became of a program, as one HTML file that opens anywhere.

`weft viz script.py` runs a script and serves its page; WEFT_VIZ=1 makes one of any program at its end; `recorded` makes one
of a block.
"""

from weft.viz._page import page_of
from weft.viz._serve import Server, recorded, watch_process

__all__ = ["Server", "page_of", "recorded", "watch_process"]
