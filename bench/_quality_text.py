"""What docs/quality.md says beside its tables."""

from __future__ import annotations

from typing import Final

BASELINES: Final = (
    "The best of any column of plain baselines (FTS5, BM25, dense, their sums) for each figure, and without a model FTS5 "
    "with OR and porter stems. Bold: below by more than 0.3 points."
)
TIMES: Final = (
    "Facts stored with the time at which they were said (`time=`) and their lists of names where the data have them. "
    "A question that names a time prefers facts of it; one that asks for the present (type `latest`) the newer of two "
    "about the same thing. Recall@10 / MRR@10 without a floor."
)
SMALL: Final = "Each question is asked of a store that holds its fact and those of other questions of its task."


TEXT: Final = """## What each channel is good for

* `semantic` finds what is said in other words or in another language; it carries nearly everything but names and commands.
* `fts` keeps exact words, commands and identifiers in front.
* `jaccard` prefers short facts that say little else; it matters little.
* `hrr` is a share of the question that does not punish long facts, and knows entities: names, conversations.

A fact in another script than the question cannot share its words. Its channels of words count as a tenth of its meaning
at least; that is what moves xquad_mixed.

## Limits

* No similarity tells a question with a wrong premise from a right one. What is missing about a known name is told by what
  else is known about it: the best fact must say more than most of the others do that hold the name. Three in five of
  agentmem's are answered still; the rule that answers half of them (one other fact is enough, a floor of .06) keeps 97% of
  all right first hits, not 98%. What it hides else: four in a hundred of locomo's, where all is about two people.
* An unknown name alone is looked for by its words. Names of one word, and names in sentences, are not told from known ones.
* Aliases are known where a fact states them, where the other of the Latin and Cyrillic scripts writes the same name, or where
  they were added: a first name for a full one, or Chinese for Latin, is another name (see alias, above).
* Relevance grows with the store: below 500 facts the floor sinks (`selection.MANY`; `bench/floor.py`); it is mild for 3000.
* Indirect preferences (prefeval) are the weakest task: hardly a word in common, and others may apply as well.
* A time in a question is read where it is written as one; what a fact says about another time than that of its making is not.
* Samples differ from all questions by a point or two on a single task.

## What did not help

* The newer of two near duplicates always first, also where the question does not ask for the present: agentmem -2 points of
  MRR for cross-lingual questions, locomo -1.5 to -14. Only where it asks ("now", "сейчас").
* Lifting along chains of ever newer facts: the last one is about something else (latest .78; beside the best fact only: .84).
* Taking "now" and its like out of the question before it is embedded: no rank moves to the first place.
* Shares of unknown words, gaps between the first and the next hit, z-scores of the cosine: as signs that nothing answers
  they let through 72 to 100% of agentmem's absent questions where 95% of the right hits are kept; a regression over all of
  them (cross-validated) half, but with what merely tells its questions apart.
* The fact that is nearest among those with the same names, instead of what most of them have: a near duplicate hides the answer
  (locomo: a fifth of the right first hits).

## Data

The data only measure; nothing of them, or made from them, is in the package. NC: not for commercial use.

| task | source | licence |
|---|---|---|
| locomo | LoCoMo (Maharana et al., ACL 2024) | CC BY-NC 4.0 (NC) |
| prefeval | PrefEval (Zhao et al., ICLR 2025) | CC BY-NC 4.0 (NC) |
| xquad_* | XQuAD (Artetxe et al., 2020) | CC BY-SA 4.0 |
| tatoeba | Tatoeba test set of LASER | CC BY 2.0 FR |
| tldr | tldr-pages | CC BY 4.0 |
| nl2bash | NL2Bash (Lin et al., LREC 2018) | MIT |
| entities_en, entities_ru | WebNLG 3.0 / WebNLG+ 2020 | CC BY-NC-SA 4.0 (NC) |
| entities_zh, entities_ja | labels of Wikidata | CC0 1.0 |
| agentmem | written for this project | CC0 1.0 |
"""
