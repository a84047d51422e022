"""The words of the page, in English and Russian."""

from __future__ import annotations

from typing import Final

__all__ = ["Words", "language"]

_WORDS: Final = {
    "facts": ("facts", "факты"),
    "entities": ("entities", "сущности"),
    "contradictions": ("contradictions", "противоречия"),
    "health": ("health", "состояние"),
    "map": ("map", "карта"),
    "search": ("Search by meaning, words and names", "Поиск по смыслу, словам и именам"),
    "filter": ("only facts that hold all the words", "только факты со всеми словами"),
    "any_category": ("any category", "любая категория"),
    "category": ("Category", "Категория"),
    "order": ("Order", "Порядок"),
    "newest": ("newest first", "сначала новые"),
    "oldest": ("oldest first", "сначала старые"),
    "trusted": ("most trusted first", "сначала надёжные"),
    "doubtful": ("least trusted first", "сначала сомнительные"),
    "retrieved": ("most recalled first", "сначала востребованные"),
    "show": ("show", "показать"),
    "add": ("add a fact", "добавить факт"),
    "content": ("Fact", "Факт"),
    "tags": ("Tags", "Теги"),
    "names": ("Entities, separated by commas", "Сущности через запятую"),
    "save": ("save", "сохранить"),
    "cancel": ("cancel", "отмена"),
    "edit": ("edit", "править"),
    "remove": ("remove", "удалить"),
    "undo": ("undo", "вернуть"),
    "helpful": ("Helpful", "Полезно"),
    "unhelpful": ("Not helpful", "Бесполезно"),
    "trust": ("trust", "доверие"),
    "why": ("why", "почему"),
    "channel": ("channel", "канал"),
    "share": ("share", "доля"),
    "weight": ("weight", "вес"),
    "fts": ("keywords", "слова"),
    "jaccard": ("overlap", "совпадение"),
    "hrr": ("structure", "структура"),
    "semantic": ("meaning", "смысл"),
    "relevance": ("relevance", "близость"),
    "score": ("score", "оценка"),
    "decay": ("decay", "давность"),
    "timely": ("timely", "время"),
    "shared_terms": ("terms in common", "общие слова"),
    "shared_names": ("entities in common", "общие сущности"),
    "cosine": ("cosine of the meanings", "косинус смысла"),
    "cosine_said": ("0.2 is unrelated, 0.8 the same", "0.2 чужое, 0.8 то же самое"),
    "no_vector": ("no meaning vector", "нет вектора смысла"),
    "gives": ("gives", "вклад"),
    "channels": ("channels", "каналы"),
    "best_first": (
        "best first: score = relevance × trust × decay",
        "сначала лучшие: оценка = близость × доверие × давность",
    ),
    "sure": ("sure", "уверенность"),
    "same subject and property (": ("same subject and property (", "тот же предмет и свойство ("),
    "same subject (": ("same subject (", "тот же предмет ("),
    "same subject, one denies what the other says:": (
        "same subject, one denies what the other says:",
        "тот же предмет, одно отрицает другое:",
    ),
    "), other value:": ("), other value:", "), другое значение:"),
    "), opposites:": ("), opposites:", "), противоположности:"),
    "missing": ("missing", "нет"),
    "older": ("next", "дальше"),
    "newer": ("back", "назад"),
    "export": ("export as JSON lines", "выгрузить строками JSON"),
    "nothing": (
        "Nothing found. Try other words, or any category.",
        "Ничего не нашлось. Попробуйте другие слова или любую категорию.",
    ),
    "empty": (
        'This memory is empty. Add the first fact here, or run: holomem add "…"',
        "Память пуста. Добавьте первый факт здесь или командой: holomem add «…»",
    ),
    "saved": ("Saved.", "Сохранено."),
    "added": ("Added.", "Добавлено."),
    "removed": ("Removed.", "Удалено."),
    "restored": ("It is back.", "Возвращено."),
    "rated": ("Rated.", "Оценка учтена."),
    "rename": ("rename", "переименовать"),
    "new_name": ("New name", "Новое имя"),
    "merge": ("merge into this", "влить сюда"),
    "other_name": ("The other name", "Другое имя"),
    "alias": ("add another name", "добавить ещё имя"),
    "aliases": ("other names", "другие имена"),
    "unalias": ("not its name", "это не его имя"),
    "beside": ("What stands beside it", "Что стоит рядом"),
    "beside_said": (
        "The number says how many of its facts name both.",
        "Число говорит, сколько его фактов называют обоих.",
    ),
    "entities_said": (
        "The number says how many facts name it; other names follow.",
        "Число говорит, сколько фактов её называют; дальше другие имена.",
    ),
    "find_name": ("Find a name", "Найти имя"),
    "unknown": ("No fact names it.", "Ни один факт её не называет."),
    "token_said": (
        "It is in the file that was named by --token-file where holomem web was started.",
        "Он в файле, указанном в --token-file при запуске holomem web.",
    ),
    "its_facts": ("Its facts", "Факты о нём"),
    "related": ("Facts that are related", "Связанные факты"),
    "no_entities": ("No entities yet: they come with facts.", "Сущностей пока нет: они появляются с фактами."),
    "no_pairs": ("No two facts contradict each other.", "Факты друг другу не противоречат."),
    "keep": ("keep this, remove the other", "оставить это, другое удалить"),
    "keep_both": ("keep both", "оставить оба"),
    "kept": ("Both stay.", "Оба остаются."),
    "backfill": ("make the missing vectors", "создать недостающие векторы"),
    "running": ("making vectors", "создаются векторы"),
    "check": ("check the whole file", "проверить весь файл"),
    "sound": ("The file is sound.", "Файл цел."),
    "on": ("on", "включён"),
    "off": ("off", "выключен"),
    "file": ("file", "файл"),
    "model": ("model", "модель"),
    "vectors": ("meaning vectors", "векторы смысла"),
    "memory": ("memory of this process", "память процесса"),
    "size": ("file size", "размер файла"),
    "kernel": ("kernel", "ядро"),
    "problem": ("problem", "неполадка"),
    "note": ("note", "заметка"),
    "no_map": ("There are no meaning vectors to draw. See health.", "Нет векторов смысла для карты. См. состояние."),
    "map_said": ("Each dot is a fact; near dots mean similar things.", "Точка — факт; близкие точки похожи по смыслу."),
    "token": ("Access token", "Ключ доступа"),
    "enter": ("enter", "войти"),
    "wrong_token": ("That is not the token.", "Это не тот ключ."),
    "file_gone": (
        "The file of this memory was removed or replaced. Nothing more is written; start holomem web again.",
        "Файл памяти удалён или заменён. Больше ничего не записывается; перезапустите holomem web.",
    ),
    "read_only": ("This page is read-only.", "Только чтение."),
    "error": ("That did not work", "Не получилось"),
    "strange_name": ("This server does not go by that name.", "У этого сервера другое имя."),
    "another_page": ("The request comes from another page.", "Запрос пришёл с другой страницы."),
    "no_form_of_ours": (
        "Changes come from the forms of this page only.",
        "Изменения принимаются только из форм этой страницы.",
    ),
    "old_form": (
        "The form is of an earlier start of the server. Load the page again.",
        "Форма от прошлого запуска сервера. Загрузите страницу заново.",
    ),
    "no_length": ("The length of the form is missing.", "Не указана длина формы."),
    "too_long": ("The form is longer than a million bytes.", "Форма длиннее миллиона байт."),
    "cut_short": ("The form is cut short.", "Форма оборвана."),
    "methods": ("The page answers GET, HEAD and POST only.", "Страница отвечает только на GET, HEAD и POST."),
    "failed": ("The page failed. The log of the server says why.", "Сбой страницы. Причина в журнале сервера."),
    "no_form": ("There is no such form.", "Такой формы нет."),
    "no_page": ("There is no such page.", "Такой страницы нет."),
    "no_file": ("There is no such file.", "Такого файла нет."),
    "changed_meanwhile": (
        "The fact was changed meanwhile. It says by now what stands first; your text is in the form. Save to replace it.",
        "Факт тем временем изменили. Сначала то, что в нём теперь; ваш текст в форме. Сохраните, чтобы заменить.",
    ),
    "home": ("back to the facts", "к фактам"),
    "skip": ("to the content", "к содержанию"),
}


class Words:
    """The words of one language; `words.save` is the text under "save"."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        self._place = 1 if lang == "ru" else 0

    def __getitem__(self, key: str) -> str:
        return _WORDS[key][self._place]

    def said(self, message: str) -> str:
        """The text under a key, or a message that is none as it is."""
        return self[message] if message in _WORDS else message


def language(accepted: str) -> str:
    """The first language of an Accept-Language header that we speak: "en" or "ru"."""
    wanted = []
    for place, part in enumerate(accepted.split(",")[:20]):
        name, _, quality = part.strip().partition(";q=")
        try:
            wanted.append((-float(quality or 1), place, name.lower()[:2]))
        except ValueError:
            continue
    return next((name for _, _, name in sorted(wanted) if name in ("en", "ru")), "en")
