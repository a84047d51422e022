"""How well pairs that cannot both hold are told from others: `python bench/contradictions.py --eval FOLDER --model FOLDER`.

AUC and best F1 for each source of pairs, with the model, without it, and without the list of several-valued words;
then the speed of `Memory.contradictions` over many facts. `--read TASK` prints the top pairs of a task's facts, to be read.
"""

from __future__ import annotations
