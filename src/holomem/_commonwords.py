"""Words that begin sentences with a capital and are no names, for `entities.extract`; small lists made by hand.

A word that is missing here costs one entity too many, a name that is here costs one link at the start of a sentence
(in its middle the capital is believed). `COMMON_RU` is compared by stem.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from holomem.text import normalise, stem

COMMON = frozenset(
    """
    ability homelab lab router access account accounts action actions add added adding address admin agent agents agreed alert alerts allow almost along
    already alternatively although always among another answer answers anyone anything app apps application ask asked assistant
    auth avoid away back backup backups bad basically behind below best beta better between big bill billing birthday
    blog board body book books bot both branch branches bread bring budget bug bugs build building builds business buy cache call
    called calls camera cameras cannot car card cases cat change changed changes chat check checks children city class
    clean cleanup client clients close code colleague come command commands comment comments commit commits common company config configuration
    connect contact contacts container containers contract cost costs country create created cron currently customer
    customers daily dark data database databases date day days deadline debug december decided decision default delete
    deploy deployed deployment deployments design despite details dev device devices different dinner disable disk dislikes docs
    document documentation documents dog door draft drop dual due early either email emails employee enable end english enough ensure
    environment error errors especially even event events ever every everybody everyone everything example except expect export
    fact facts fail failed family father feature features few file files final finally find first fix fixed follow food
    former found free friday friend friends full further future general generally get give given go goal goals good got great group half
    happy hard hardware hello help hence heating high hi hold holiday home host hosts hour house however http idea ideas
    if image images important incident indeed info information initially inside install installed instead internal internet inventory invoice
    invoices issue issues item items job jobs join keep key keys kids kitchen know known large last late lately later latest lead
    leave left less let letter level light like likes limit list little live lives load local log login logs long look lots love loves
    low lunch machine mail main maintenance make makes manager many map march master maybe meanwhile meeting meetings member
    members memory merge message messages metrics migration milk minor mobile model models module monitor monitoring month monthly morning mother move moved much
    music must name names need needs network never nevertheless new next night nobody node nodes none nor note notes
    nothing notice now number off offer office often ok okay old one ones online open order orders original others otherwise output
    owner package page pages paper parents part party password passwords past path payment payments people per perhaps permission person phone photos
    pipeline place plan plans please plus point policy port ports post prefer preferred prefers previously price private prod
    production product profile program project projects protocol put query question questions queue quick quite rather read real really reason
    recently record remember remind reminder remote remove removed repeat replace report reports repository request requests require required
    reset rest restart result results retention return review right role room root rule rules run running runs said sales same
    saturday save says schedule school script scripts search second secret secrets section security see seems select self send sent
    server servers service services session set setting settings setup several shared shell ship shipping short show shows similarly simple since
    single site size small software somebody someone something sometimes soon source speaks specific staff stage staging start started
    state status step steps still stop storage store stored stories style subject subscription success such suddenly summary support sure switch sync system
    systems table tag tags take talk target task tasks teacher team teams tell template terminal test testing tests text thank thanks theme
    thing things think third this though three thus ticket tickets time timeout times timezone title today together token tokens tomorrow tonight too
    tool tools topic total traffic training transport travel tried try turn two type ui unless unlike update updated updates upgrade upload
    usage use used user users uses using usually vacation value values version versions via video wait wake wants warning
    warnings watch way we web website week weekly weekend weeks welcome well went whatever whenever whether whole wife wiki window
    within without work workflow working works write wrong year yearly years yes yesterday yet zone
    wow yeah yep nope oh ah aww haha hey congrats cool nice sounds glad absolutely definitely totally exactly seriously sorry
    here hopefully luckily animals pharmacy costume clone override initialize display emit print filter upload download encode decode
    convert compress extract archive compile execute launch lock unlock mount unmount merge commit push pull fetch sort split scan
    parse format generate specify compare count copy edit limit parse resize rename retry restore revert roll rotate skip suspend
    resume terminate toggle trace uninstall validate verify watch wipe interactively recursively apply attach detach authenticate
    define describe determine dump dry extract force forward ignore import indicate inspect kill manage modify output perform
    encrypt decrypt include expand accept simulate delay sign combine annotate discard enumerate wait wrap shut activate deactivate
    evaluate calculate substitute synchronize view invert preview isolate pretend jump decrease increase subscribe publish identify
    invoke rollback decompress inherit attempt overwrite receive resolve stream throw ping mode history string expression variable
    exit true false description argument arguments option options defaults
    guess bet wish anyway anyways overall perfect thoughts tons respect exciting gather
    prevent process quit reboot reload remotely render reverse
    afterwards accordingly additionally aged ago apparently approximately around aside beautiful because began born bought calling certain
    chose considering consequently died during eight eleven english feel five formerly founded four furthermore given going headquartered
    hopefully including its located leader married moreover named nine originally played possibly prior regarding released seven
    six speaking spoken ten therefore twelve unfortunately until upon whereas written
    gracias hola hoy ayer mañana siempre nunca todos cada cuando mientras según después antes ahora entonces además también quiere usa
    prefiere necesita tiene hay trabaja vive odia nació servidor usuario proyecto equipo reunión cliente casa
    aujourd'hui hier demain toujours jamais chaque lorsque pendant après avant maintenant alors ensuite depuis selon bonjour merci utilise
    préfère travaille habite serveur projet équipe utilisateur réunion
    heute gestern morgen immer nie alle alles bitte danke dann danach jetzt später früher während bevor nachdem dort dabei dafür
    deshalb trotzdem außerdem jeder niemand manchmal oft wohnt arbeitet mag nutzt benutzt bevorzugt hallo
    oggi ieri domani sempre mai ogni dopo prima adesso hoje ontem amanhã sempre nunca cada depois antes agora
    """.split()
)

COMMON_RU = """
    ставка ветка камера маму мама папа отец мать сын дочь жена муж брат сестра кот кошка собака ноутбук сервер база данные
    семья ребёнок дети школа дом квартира город страна улица адрес телефон почта пароль ключ файл папка диск бэкап резервная копия
    проект задача тикет релиз версия сборка деплой выкатка прод тест код скрипт команда отчёт документ договор контракт
    счёт оплата деньги цена срок дата день ночь утро вечер неделя месяц год час минута время встреча созвон звонок
    сводка письмо сообщение чат канал группа заметка список правило настройка конфиг порт сеть роутер доступ пользователь клиент
    заказчик коллега друг начальник сотрудник компания фирма офис магазин сайт страница сервис приложение программа система хранилище
    отвечать писать использовать запускать проверять помнить напомнить купить сделать нужно надо можно нельзя хочу хочет любит нравится
    предпочитает работает живёт делает сказал сказала просил просила решили решил договорились обычно всегда никогда иногда часто редко
    сегодня завтра вчера теперь раньше позже потом затем страховка дамп джоба анализ пул датчик аккумулятор ортодонт стоматолог загранпаспорт паспорт пересдача отца отцу отцом мама документы
    галерея строительство сметана торт пирожное линия глава паразит одна одной одного одним вариант родина
    сначала после перед когда пока если хотя поэтому потому кроме вместо
    включая например кстати пожалуйста спасибо привет да нет ладно новый новая новое старый старая первый второй третий последний
    все всё каждый каждая каждую любой другой другая один два три четыре пять десять борщ рецепт отпуск праздник день рождения
    хлеб ингредиент блюдо столица язык население президент лидер мэр автор музыкант певец певица писатель художник актёр режиссёр
    футболист игрок тренер клуб лига команда аэропорт здание университет памятник завод самолёт корабль ракета книга роман фильм
    музыка группа альбом песня жанр еда напиток кухня регион область штат река озеро море гора остров архитектор место
    утренний вечерний ночной рабочий домашний основной главный общий полный текущий данный этот тот такой какой сам самый
    кровать стол комната машина автомобиль велосипед поезд билет рейс врач лекарство аллергия больница ошибка проблема причина
    позвонить спросить передать отправить добавить удалить поставить заказать забрать встретить найти показать объяснить обсудить
    перенести починить обновить включить выключить узнать съездить помочь посмотреть прочитать договориться написать
    решение вопрос ответ идея план цель результат лог журнал мониторинг график таблица дашборд алерт уведомление подписка
    контейнер виртуалка образ кластер узел нода очередь кэш индекс запрос схема миграция токен сертификат домен
    ходит едет идёт пришёл пришла стал стала родился родилась умер умерла находится расположен является называется зовут
    согласно благодаря около возле внутри вокруг среди несмотря также тоже ещё уже только лишь даже ведь именно
""".split()

NO_NAMES = frozenset(
    """
    let btw yup nah woohoo woah whoa phew gotcha oof ooh mmm mm hmm uh um ouch darn gonna wanna yoohoo awww aw kudos y'all
    congrats thanks cheers oops bye yay wow hey hi hello lol omg yep yeah nope haha ugh aww q1 q2 q3 q4
    january february march april may june july august september october november december jan feb mar apr jun jul aug sep sept oct
    nov dec monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun mondays fridays sundays
    januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes martes miércoles jueves viernes
    janvier février mars avril juin juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi vendredi samedi
    январь января январе февраль февраля феврале март марта марте апрель апреля апреле май мая мае июнь июня июне июль июля июле
    август августа августе сентябрь сентября сентябре октябрь октября октябре ноябрь ноября ноябре декабрь декабря декабре
    понедельник вторник среда среду четверг пятница пятницу суббота субботу воскресенье christmas easter
    inc ltd llc gmbh corp limited ag plc mbit gbit kbit gib mib tib kib kwh kw mhz ghz вт квт гц кб мб гб тб мбит гбит euro euros dollar dollars рублей руб
    """.split()
)

TITLES = frozenset("dr mr mrs ms prof sr sra mme mlle dipl ing herr herrn frau д-р проф г-н г-жа".split())

CONNECTORS = frozenset(
    "of the de da di do dos das du del della dei der den des van von vom zu zur bin ibn al el la las los le les ter ten af av".split()
)
"""Small words inside a name; only between two capitalised words."""

GENERIC = frozenset(
    """
    ok todo fyi asap ps am pm gb mb kb tb utc gmt cet id ip url uri api cpu gpu ram ssd hdd usb sql ui ux ci cd pr qa os it hr ceo cto
    faq pdf csv json xml yaml html css http https ssh ssl tls tcp udp dns ttl vm db ai ml llm eur usd not never always all and or no yes
    must only any none true false null tv pc vat eta dm nas ups vpn lan wan gps nut readme sh cpu ecc isp cto cfo coo ci url sku pos wifi ip sftp ftp smtp imap ntp nat iso ооо оао зао пао ао ип гмбх gui cli env btw go so
    """.split()
)
"""All-capitals words that are no names."""

HAN_CUTS = tuple(
    """
    的 是 在 和 与 与 为 了 把 被 从 到 给 向 对 让 跟 由 用 将 比 以 及 或 但 而 也 都 就 还 又 才 不 没 无 很 太 最 更 每 这 那 我 你 您 他 她 它 们 吗 呢 吧 啊 要 会 能
    有 喜欢 使用 负责 因为 所以 如果 已经 可以 需要 应该 位于 来自 住 去 来 说 叫 做 写 吃 喝 买 看 请 邀请 建议 决定 通过 发布 维护 评估 提交 借 暂 搬 寄 工作 上班 读书 上学 学习 生活 居住 出差 开会 实习 部署 运行 於 於 並 從 與 為 個 這 還 會
    """.split()
)
SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩邓冯曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤張劉陳楊黃趙吳孫馬羅鄭謝許韓鄧馮蕭葉蘇呂盧鍾譚陸"
)

NAME_HEADS = frozenset(
    """
    new big great home time first red black white green blue school house high long little old open general lake market book club
    point light music city park north south east west saint san santa fort mount port cape grand royal national international
    international united central free good google visual second third last fire sea river island street road hall bank day night
    young bad dark deep fast hot cold lost star super union world game power team land master march may
    """.split()
)
"""Ordinary words that often begin a name of several words; kept there (New Britain, Home Assistant)."""

HEADS = frozenset(
    """
    university institute bank republic kingdom house church school college department ministry museum order lord city state
    states isle island islands bay gulf cape battle school faculty academy association federation union council court office hall
    people province county district duke earl king queen prince princess president bishop government library center centre
    society league party front army band book art arts
    """.split()
)
"""Words that "of" follows inside a name, even after other words (Massachusetts Institute of Technology)."""

GERMAN_NOUNS = tuple(
    """
    miete vertrag werk dienst schrank konto karte telefon uhr euro auftrag woche monat jahr stunde minute frist rechnung betreff
    nummer haber mieter mieterin leiter leiterin partner partnerin kunde kundin freund freundin kollege kollegin lehrer schule kind
    kinder frau mann mutter vater sohn tochter bruder schwester eltern familie wohnung zimmer küche keller dach garten tür
    fenster tisch stuhl bett auto rad bahn zug bus flug reise urlaub weg datei dateien ordner liste
    tabelle bild foto seite text wort satz name adresse kennwort passwort schlüssel zugang rechner server netz netzwerk speicher
    platte kabel gerät drucker bildschirm handy sicherung kopie abbild fehler problem frage antwort grund ziel plan termin treffen
    gespräch anruf brief nachricht mail post paket geld preis kosten steuer gehalt bank kasse laden markt essen trinken brot kuchen
    kaffee tee milch wasser wein bier obst gemüse fleisch fisch käse zucker salz öl arzt ärztin krank medikament allergie hund katze
    tier pflanze wetter regen sonne wind licht strom gas heizung wärme kälte arbeit beruf firma büro projekt aufgabe teil
    stück anzahl menge größe farbe form art weise seite ende anfang mitte stand lage fall rolle regel recht pflicht zeit morgen abend
    nacht mittag ende ersten grad prozent meter kilo gramm liter stelle abteil gruppe team chef chefin inhaber inhaberin nachbar
    gründer gouverneur eigentümer vorsitzende autor lehrbuch kurs daten artikel job thermostat kontakt kalender stick port adapter dose lampe messer sensor schalter steckdose stube zeit geld
    """.split()
)
"""German nouns, also as the end of a compound; all nouns have capitals there."""

JAPANESE_COMMON = frozenset(
    "彼 彼女 彼ら 私 私達 僕 俺 我々 皆 皆様 お客 客 奥 社員 学生 生徒 先生 医者 店員 社長 部長 友達 担当者 開発者 利用者 管理者 母 父 姉 兄 妹 弟 プロジェクト チーム アプリ サービス データ"
    " データベース システム ミーティング ネットワーク パスワード アカウント バックアップ ログ コード テスト プログラム ページ サイト グループ ノート リスト"
    " スマホ パソコン コーヒー レストラン ホテル 作品 名前 言語 場所 時間 今日 明日 昨日 会社 仕事 言語・手話 行政区画 職業 国籍 母語 担当 情報 設定 問題 必要 使用 毎日 毎週 毎月 毎朝 自分 家族 友人 ユーザー メール サーバー ファイル".split()
)

JAPANESE_HONORIFICS = ("さん", "さま", "くん", "ちゃん")
JAPANESE_TITLES = tuple("様 氏 君 先生 先輩 教授 博士 社長 部長 課長 係長 店長 監督 選手 医師".split())
"""What stands behind a name of a person."""

CHINESE_ROLES = tuple(
    """
    女儿 儿子 妻子 丈夫 老婆 老公 同事 朋友 好友 老板 经理 总监 老师 同学 妈妈 爸爸 母亲 父亲 哥哥 弟弟 姐姐 妹妹 医生 客户 邻居 教授 律师 工程师 设计师
    """.split()
)
"""Who somebody is, before the name."""

CHINESE_COMMON = frozenset(
    "周末 早上 晚上 上午 下午 中午 家里 公司 办公室 学校 这里 那里 网上 路径 文档 内部 时间 地址 问题 接口 目标 原因 结果 情况 方法 目前 现在 今天 明天 昨天 后来 用户 项目 公司 机器 主要难点".split()
)

_RUSSIAN_COMMON = frozenset(stem(normalise(word)) for word in COMMON_RU)
_RUSSIAN_START = re.compile(
    r"(?:ться|тся|ать|ить|еть|ять|ую|юю|ого|его|ому|ему|ыми|ыми|ыйся|ение|ения|ению|ость|ости|ация|ации|щ(?:ая|ий|ее|ие|ую|их|им|ими|его|ей)(?:ся)?)$"
)
_ENGLISH_START = re.compile(
    r"(?:[a-z]{3}ing|[a-z]{2}ly|[a-z]{3}ed|[a-z]{3}ments?|[a-z]{3}tions?|[a-z]{3}ness|n't|'(?:s|re|ll|ve|d|m))$"
)


def is_function_word(word: str, stops: frozenset[str]) -> bool:
    return word.lower().replace("ё", "е").replace("’", "'") in stops and not (len(word) > 1 and word.isupper())


def is_ordinary(word: str, stops: frozenset[str], is_common: Callable[[str], bool] | None) -> bool:
    """Whether a capitalised word is an ordinary one, as far as lists, endings and the caller can tell."""
    lower = word.lower().replace("’", "'")
    if lower in COMMON or lower.partition("-")[0] in COMMON | stops or is_function_word(word, stops):
        return True
    folded = normalise(word)
    if "\u0400" <= folded[0] < "\u0530":
        if stem(folded) in _RUSSIAN_COMMON or _RUSSIAN_START.search(folded):
            return True
    elif word.isascii() and _ENGLISH_START.search(lower):
        return True
    return is_common is not None and is_common(lower)


def is_identifier(word: str) -> bool:
    """pve-01, PLAT-15800, snake_case, GitHub, C++: a name whatever its case and place."""
    if word.endswith(("++", "#")):
        return word[0].isalpha()
    if "_" in word:
        return any(map(str.isalpha, word)) and word.isascii()
    if not word.isascii():
        return re.fullmatch(r"[^\W\d_]{2,}-\d+", normalise(word), re.ASCII) is not None  # grünkohl-01
    if any(map(str.isdigit, word)):
        return word[0].isalpha() and (len(word) > 3 or word[0].isupper()) and not re.fullmatch(r"[a-z]\d+", word)
    return re.search(r"[a-z][A-Z]", word) is not None and len(word) > 3
