"""Words that `claims` must know: what denies, what opposes what, what names a time, what lets several values hold.

Everything is case-folded, with accents, yo written as ye. Closed classes (negation, copulas, articles, calendar) are
as complete as a short list can be; antonyms and several-valued verbs are open classes, so there the list only helps.
"""

from __future__ import annotations

import re
from typing import Final

NEGATIONS: Final = frozenset(
    """
    no not never none nobody nothing nowhere neither nor without cannot can't forbidden prohibited
    не нет ни никогда никто никого никому ничего ничто нигде нельзя без запрещен запрещена запрещено запрещены
    nicht kein keine keinen keinem keiner keines nie niemals niemand niemanden nichts nirgends weder ohne verboten
    nunca jamás nadie nada ningún ninguna ninguno tampoco sin prohibido prohibida
    ne pas jamais aucun aucune personne rien sans interdit interdite
    não nem ninguém nenhum nenhuma non nessuno niente senza
    """.split()
)
"""English contractions with n't and French n' are found by their form."""

NO_MORE: Final = frozenset("longer anymore больше более mehr más plus mais più 再".split())
"""What only says, beside a negation, that something held before."""

UNSPACED_NEGATION: Final = re.compile(
    "(?:(?<!差)不(?![同断过])|没有?|无(?![线论])|未(?!来)|(?<![特区分级识])别(?!人)|非(?!常|洲))|ない|ません|なかった|않|없|못"
)

ENDED: Final = frozenset(
    """
    formerly previously until former ex раньше прежде бывший бывшая бывшие когда-то
    früher ehemals ehemaliger ehemalige bisher antes anterior anteriormente exmiembro auparavant ancien ancienne
    autrefois
    """.split()
)
"""Words that put a statement into the past: it may have held, whatever holds now."""

RECURRING: Final = frozenset(
    "every each каждый каждую каждое по jeden jede jedes cada todos todas chaque tous toutes 每".split()
)

COPULAS: Final = frozenset(
    """
    is are was were be been isn't aren't wasn't weren't ist sind waren es era eran fue está están est sont
    était étaient sera é são foi è sono называется является это
    """.split()
)
PREPOSITIONS: Final = frozenset(
    """
    in at on from to into onto for by with near via under over within after before
    в во на из у к ко с со под над за до от при через по
    as of als como comme как am im an auf aus bei beim vom von zu zum zur nach unter über mit für
    en a de del desde con para hasta por sobre bajo à au aux du dans sur chez pour avec vers
    """.split()
)
INDEFINITE: Final = frozenset(
    "a an another some several many ein eine einen einem einer einige un una unos unas une um uma uno".split()
)
DEFINITE: Final = frozenset("the der die das den dem el la los las le les o os il lo gli l'".split())

_NUMERALS: Final = {
    2: "two два две двух zwei dos deux 两 二", 3: "three три трех drei tres trois 三", 4: "four четыре vier cuatro quatre 四",
    5: "five пять пяти fünf cinco cinq 五", 6: "six шесть шести sechs seis 六", 7: "seven семь семи sieben siete sept 七",
    8: "eight восемь восьми acht ocho huit 八", 9: "nine девять девяти neun nueve neuf 九", 10: "ten десять десяти zehn diez dix 十",
    11: "eleven elf once onze", 12: "twelve двенадцать zwölf doce douze", 20: "twenty двадцать zwanzig veinte vingt",
    30: "thirty тридцать dreißig treinta trente", 50: "fifty пятьдесят fünfzig cincuenta cinquante",
    100: "hundred сто hundert cien cent", 1000: "thousand тысяча tausend mil mille",
}  # fmt: skip
NUMERALS: Final = {word: str(number) for number, words in _NUMERALS.items() for word in words.split()}
"""Numbers in words -> in digits. "One" is left out: it is an article and a pronoun in most languages."""

SEVERAL: Final = frozenset(
    """
    also another too among several various sometimes often
    knows know speaks speak understands understand likes like loves enjoys dislikes hates uses visits visited supports
    includes contains depends
    member friend colleague neighbor neighbour partner ally sibling cousin twin rival competitor hobby skill
    и еще также тоже иногда часто знает понимает любит говорит поддерживает видел посетил просил просила содержит зависит
    друг подруга коллега сосед соседка член
    auch oft manchmal spricht kennt kann mag versteht unterstützt enthält freund freundin kollege kollegin mitglied
    también habla conoce sabe entiende usa apoya contiene amigo amiga miembro colega vecino
    aussi parle connaît sait comprend aime utilise contient ami amie membre collègue voisin
    """.split()
)
"""Lower-case words that say that several values may hold at once: knowing, liking, using; relations of equals."""

ONE_OF: Final = re.compile(
    r"\b(?:one|some|two|another) of\b|\b(?:один|одна|одно|одним|одной) из\b"
    r"|\bein\w* der\b|\bun[oa]? de\b|\bune? des\b"
)
UNSPACED_SEVERAL: Final = re.compile("之一|也|还|会|喜欢|懂|朋友|も|好き|話|友達")

_CALENDAR: Final = {
    "weekday": """
    monday tuesday wednesday thursday friday saturday sunday
    понедельник понедельника понедельникам вторник вторника вторникам среда среду среды средам четверг четверга
    четвергам пятница пятницу пятницы пятницам суббота субботу субботы субботам воскресенье воскресенья воскресеньям
    montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag montags dienstags mittwochs donnerstags
    freitags samstags sonntags mondays tuesdays wednesdays thursdays fridays saturdays sundays
    lunes martes miércoles jueves viernes sábado domingo lundi mardi mercredi jeudi vendredi samedi dimanche
    """,
    "month": """
    january february march april may june july august september october november december
    январь января январе февраль февраля феврале март марта марте апрель апреля апреле май мая мае июнь июня июне
    июль июля июле август августа августе сентябрь сентября сентябре октябрь октября октябре ноябрь ноября ноябре
    декабрь декабря декабре
    januar februar märz mai juni juli oktober dezember
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    janvier février mars avril juin juillet août septembre octobre novembre décembre
    """,
    "day": """
    yesterday today tomorrow tonight вчера сегодня завтра gestern heute morgen ayer hoy mañana hier aujourd'hui demain
    last next this прошлом прошлый этом следующем letztes letzten letzte dieses nächstes nächsten nächste
    morning noon afternoon evening night midnight утром днем вечером ночью полночь полдень
    abend mittag nacht mitternacht matin midi soir nuit minuit tarde noche
    """,
}
CALENDAR: Final = {word: kind for kind, words in _CALENDAR.items() for word in words.split()}
"""Word -> weekday, month or day: which of a closed set of times it names."""

_OPPOSITES: Final = """
on/off enabled/disabled enable/disable open/closed opens/closes up/down active/inactive online/offline public/private
alive/dead true/false allowed/forbidden allow/deny allows/denies accepts/refuses accepts/rejects accept/reject
working/broken works/broken light/dark hot/cold warm/cold wet/dry big/small large/small long/short tall/short high/low
fast/slow early/late first/last always/never before/after above/below inside/outside indoors/outdoors left/right
north/south east/west full/empty old/new young/old rich/poor happy/sad easy/difficult easy/hard strong/weak loud/quiet
noisy/silent clean/dirty safe/dangerous free/paid manual/automatic mandatory/optional required/optional single/married
vegetarian/carnivore likes/dislikes likes/hates loves/hates standing/sitting sleeping/awake asleep/awake empty/crowded
increases/decreases rises/falls passed/failed passes/fails succeeded/failed starts/stops kept/deleted present/absent
включен/выключен включен/отключен включена/выключена включена/отключена включено/выключено включено/отключено
открыт/закрыт открыта/закрыта открыто/закрыто разрешен/запрещен разрешено/запрещено разрешена/запрещена
работает/сломан работает/сломана можно/нельзя всегда/никогда светлый/темный светлая/темная светлую/темную
большой/маленький высокий/низкий горячий/холодный старый/новый быстрый/медленный ручной/автоматический женат/холост
любит/ненавидит публичный/закрытый платный/бесплатный полный/пустой жив/мертв внутри/снаружи
an/aus offen/geschlossen auf/zu aktiviert/deaktiviert ein/aus erlaubt/verboten funktioniert/kaputt geht/kaputt
hell/dunkel groß/klein alt/neu schnell/langsam heiß/kalt immer/nie laut/leise voll/leer verheiratet/ledig
öffentlich/privat kostenlos/kostenpflichtig manuell/automatisch mag/hasst
abierto/cerrado abierta/cerrada encendido/apagado encendida/apagada activado/desactivado permitido/prohibido
claro/oscuro grande/pequeño viejo/nuevo rápido/lento caliente/frío siempre/nunca lleno/vacío casado/soltero
público/privado gratis/pago
ouvert/fermé ouverte/fermée allumé/éteint activé/désactivé autorisé/interdit clair/sombre grand/petit vieux/nouveau
rapide/lent chaud/froid toujours/jamais plein/vide marié/célibataire public/privé gratuit/payant
"""


def _both_ways(pairs: list[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        one, other = pair.split("/")
        found[one] = (*found.get(one, ()), other)
        found[other] = (*found.get(other, ()), one)
    return found


OPPOSITES: Final = _both_ways(_OPPOSITES.split())
"""Word -> its opposites."""

UNSPACED_OPPOSITES: Final = tuple(
    tuple(pair.split("/"))
    for pair in "开启/关闭 打开/关闭 启用/禁用 允许/禁止 公开/私有 深色/浅色 上午/下午 总是/从不 已婚/未婚 免费/收费".split()
)

NEGATING_PREFIXES: Final = (
    "un",
    "in",
    "im",
    "ir",
    "il",
    "dis",
    "non",
    "de",
    "des",
    "dé",
    "не",
    "без",
    "бес",
    "an",
    "a",
)
"""What turns a word into its opposite when it is put before it (secured / unsecured, действителен / недействителен)."""
