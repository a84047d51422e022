"""Function words of seven languages, for `text` (dropped beside other words) and `entities` (never a name alone).

Small on purpose. Words that mean something in another language of the list are left out: German "war", "hat", "man",
French "car", "son", Spanish "sin", Portuguese "os". Accents matter here, so "für" is a stop word and "fur" is not.
"""

EN = """
a about after all also am an and any are as at be because been before being but by can could did do does doing during
each for from had has have having he her here hers him his how i if in into is it its itself just me more most my
no nor not of off on once only or other our ours out over own same she should so some such than that the their theirs
them then there these they this those through to too under until up us very was we were what when where which
while who whom whose why will with would you your yours i'm i've i'd i'll it's that's there's we're you're they're
what's who's where's how's
"""
RU = """
а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее если есть еще
же за здесь и из или им их к каждый как какая какие каким какой какого какую ко когда который которая которое которые
кто куда ли либо лишь меня мне много мог могут может мой моя мы на над надо нам нас наш наша не него нее нет нею ни них но
ну о об однако он она они оно от очень по под при с сам свой своя своей своего своих свои свою себя сейчас со так также
такой там те тебя тем тех то того тоже той только том тот ту ты у уже хотя чего чей чем через что чтобы чье чья эта эти
этим этих это этого этой этом этот эту я
"""
DE = """
aber als am an auch auf aus bei beim bis das dass dem den denn der des die dies diese diesem diesen dieser dieses doch
du durch ein eine einem einen einer eines er es für gegen habe haben hatte hier ich ihm ihn ihr ihre ihrem ihren im in ins
ist ja jede jeder jedes kann kein keine keinen können mein meine mich mir mit nach nicht noch nur ob oder ohne sein seine
seit sich sie sind soll über um und uns unser unter vom von vor warum was weil welche welcher welches wem wenn wer werden
wie wir wird wo wurde wurden zu zum zur zwischen
"""
ES = """
al ante aunque con contra cual cuál cuando cuándo de del desde donde dónde durante e el él ella ellas ellos en entre era
eran es esa ese eso esta está están estas este esto estos fue fueron ha hacia han hasta hay la las le les lo los más me
mi mis muy ni nos o para pero por porque pues que qué quien quién se según ser si sí sobre su sus también tan te tiene
todos tu tus un una unas uno unos y ya yo cómo
"""
FR = """
à au aux avec c'est ce ces cet cette chez dans de des du elle elles en est et était étaient été être eu fut il ils je
la là le les leur leurs lui ma mais mes moi ne nos notre nous ou où par pas plus pour quand que quel quelle quelles quels
qui quoi sa sans se ses si sont sous sur ta te tes toi ton très tu un une vos votre vous y
"""
PT = """
ao aos até com como da das de dela dele do dos e é ela elas ele eles em entre era essa esse esta está este eu foi foram
há isso isto já lhe mais mas meu minha muito na nas não nem no nos nós num numa o ou para pela pelas pelo pelos por qual
quando que quem se sem ser seu seus são só sua suas também tem um uma você à às
"""
IT = """
agli ai al alla alle anche che chi ci coi col come con cosa da dagli dai dal dalla dalle degli dei del della delle dello
di dove e è ed era fu gli ha ho i il in io la le lei li lo loro lui ma mi mia mio nei nel nella nelle noi non o per
perché più quale quando quella quello questa questo se si sono su sua sui sul sulla suo tra tu un una uno vi voi
"""

STOPWORDS = frozenset(word.replace("ё", "е") for words in (EN, RU, DE, ES, FR, PT, IT) for word in words.split())
"""Case-folded, with accents, yo written as ye."""
