"""Words of time in nine languages, for `times`. Data only; lower case."""

from __future__ import annotations

from typing import Final

__all__ = ["AGO", "HAN_AGO", "HAN_RELATIVE", "HINTS", "LEADS", "MONTHS", "PRESENT", "RELATIVE", "UNITS", "WEEKDAYS"]

_MONTHS: Final = (
    "january jan января январе январь январю januar jänner enero janvier janeiro gennaio",
    "february feb февраля феврале февраль февралю februar febrero février fevereiro febbraio",
    "march mar марта марте март марту märz marzo mars março",
    "april apr апреля апреле апрель апрелю abril avril aprile",
    "may мая мае май маю mai mayo maio maggio",
    "june jun июня июне июнь июню juni junio juin junho giugno",
    "july jul июля июле июль июлю juli julio juillet julho luglio",
    "august aug августа августе август августу agosto août",
    "september sep sept сентября сентябре сентябрь сентябрю septiembre septembre setembro settembre",
    "october oct октября октябре октябрь октябрю oktober octubre octobre outubro ottobre",
    "november nov ноября ноябре ноябрь ноябрю noviembre novembre novembro",
    "december dec декабря декабре декабрь декабрю dezember diciembre décembre dezembro dicembre",
)
MONTHS: Final = {word: number for number, words in enumerate(_MONTHS, 1) for word in words.split()}

# A month or weekday alone is a time only behind one of these: "May I", "mars" and "mar" are something else.
LEADS: Final = (
    "in|during|since|last|this|early|late|mid|end of|beginning of|week of|в|во|с|за|im|seit|ende|anfang|letzten"
    "|en|de|depuis|fin|em|a|desde|on|am|el|le"
)
WEEKDAYS: Final = {
    word: number
    for number, words in enumerate(
        (
            "monday понедельник montag lunes lundi",
            "tuesday вторник dienstag martes mardi",
            "wednesday среду mittwoch miércoles mercredi",
            "thursday четверг donnerstag jueves jeudi",
            "friday пятницу freitag viernes vendredi",
            "saturday субботу samstag sonnabend sábado samedi",
            "sunday воскресенье sonntag domingo dimanche",
        )
    )
    for word in words.split()
}

# (pattern, unit, how many of it back from the one that is now)
RELATIVE: Final = (
    (r"day before yesterday|позавчера|vorgestern|anteayer|avant-hier", "day", 2),
    (r"yesterday|вчера|gestern|ayer|hier|ontem|ieri", "day", 1),
    (
        r"last weekend|прошлых выходных|прошлые выходные|letztes wochenende|fin de semana pasado|week-?end dernier",
        "weekend",
        1,
    ),
    (
        r"last week|прошлой неделе|прошлую неделю|(?:letzte|vorige|vergangene)n? woche|semana pasada"
        r"|semaine (?:dernière|passée)",
        "week",
        1,
    ),
    (r"this week|этой неделе|diese(?:r)? woche|esta semana|cette semaine", "week", 0),
    (
        r"last month|прошлом месяце|прошлый месяц|(?:letzten|vorigen|vergangenen) monat|mes pasado"
        r"|mois (?:dernier|passé)",
        "month",
        1,
    ),
    (r"this month|этом месяце|diesen monat|diesem monat|este mes|ce mois", "month", 0),
    (
        r"last year|прошлом году|прошлый год|(?:letzte[ns]|vorigen|vergangenen) jahre?s?|año pasado"
        r"|l['’]an dernier|année (?:dernière|passée)",
        "year",
        1,
    ),
    (r"this year|этом году|dieses jahr|diesem jahr|este año|cette année", "year", 0),
)
HAN_RELATIVE: Final = (
    (r"前天|一昨日", "day", 2),
    (r"昨天|昨日", "day", 1),
    (r"上个?周末|先週末", "weekend", 1),
    (r"上个?(?:周|星期|礼拜)(?![一二三四五六日天末])|先週(?!末)", "week", 1),
    (r"[这本]个?(?:周|星期)(?![一二三四五六日天末])|今週", "week", 0),
    (r"上个?月|先月", "month", 1),
    (r"[这本]个?月|今月", "month", 0),
    (r"去年", "year", 1),
    (r"今年", "year", 0),
)

UNITS: Final = {
    "day": r"days?|день|дня|дней|tage?n?|días?|jours?",
    "week": r"weeks?|недел[юиь]|wochen?|semanas?|semaines?",
    "month": r"months?|месяц(?:а|ев)?|monate?n?|mes(?:es)?|mois",
    "year": r"years?|года?|лет|jahre?n?|años?|ans?",
}
# "3 weeks ago": {n} the number, {unit} the unit
AGO: Final = r"{n} {unit} (?:ago|назад)|(?:vor|hace|il y a) {n2} {unit}"
HAN_AGO: Final = (
    (r"(\d+|[一二两三四五六七八九十])\s*[天日]之?前", "day"),
    (r"(\d+|[一二两三四五六七八九十])\s*(?:个?星期|周|週間)之?前", "week"),
    (r"(\d+|[一二两三四五六七八九十])\s*(?:个月|か月|ヶ月)之?前", "month"),
    (r"(\d+|[一二两三四五六七八九十])\s*年之?前", "year"),
)

PRESENT: Final = (
    r"now|currently|current|at (?:the moment|present)|presently|these days|nowadays|today"
    r"|latest|newest|most recent|up[ -]to[ -]date"
    r"|сейчас|теперь|сегодня|ныне|нынешн\w+|текущ\w+|актуальн\w+|(?:на|в) данный момент|в настоящее время"
    r"|jetzt|derzeit|aktuell\w*|momentan|heute|gegenwärtig|zurzeit|zur zeit|im (?:augenblick|moment)|heutzutage"
    r"|ahora|actual(?:es|mente)?|hoy|en este momento|maintenant|actuel(?:le|s|les|lement)?|aujourd['’]hui|en ce moment"
    r"|agora|atual(?:mente)?|hoje|attuale|attualmente|adesso|oggi"
)
HAN_PRESENT: Final = r"现在|目前|当前|如今|眼下|今天|最新|現在|지금|현재|오늘"

# How a word begins without which a question without digits and ideographs names no time; for speed alone.
HINTS: Final = tuple(
    dict.fromkeys(
        (
            *MONTHS, *WEEKDAYS, *"""
            now current moment present these nowadays today latest newest recent up yesterday last this ago
            сейчас теперь сегодня ныне нынешн текущ актуальн данный настоящее вчера позавчера прошл это назад
            jetzt derzeit aktuell momentan heute gegenwärtig zurzeit zur augenblick gestern vorgestern letzt vorig vergangen
            dies vor ahora actual hoy este hace ayer anteayer pasad maintenant aujourd ce hier avant dern pass cette il
            agora atual hoje attual adesso oggi ontem ieri 지금 현재 오늘
            """.split(),
        )
    )
)  # fmt: skip
