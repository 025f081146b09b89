"""Own words that the generators draw from: prose in several languages, and the parts of English sentences."""

from __future__ import annotations

import random

SUBJECTS = [
    "the ferryman",
    "an old surveyor",
    "my aunt",
    "the night nurse",
    "a young glazier",
    "the archivist",
    "our neighbour",
    "the bee inspector",
    "a retired pilot",
    "the choir",
    "the apprentice",
    "a woman with two umbrellas",
    "the postmaster",
]
VERBS = [
    "repaired",
    "kept",
    "painted",
    "sold",
    "described",
    "forgot",
    "carried",
    "weighed",
    "borrowed",
    "polished",
    "drew",
    "hid",
    "returned",
    "photographed",
    "inherited",
    "measured",
]
OBJECTS = [
    "a brass telescope",
    "the last loaf of bread",
    "seven wooden chairs",
    "a map of the canals",
    "the broken barometer",
    "a box of letters",
    "an unfinished violin",
    "the keys of the mill",
    "two bicycles",
    "a jar of blue buttons",
    "the plans for the new bridge",
    "a basket of quinces",
]
ENDINGS = [
    "before the rain came",
    "without telling anyone",
    "because the market had closed early",
    "in the week after Easter",
    "although nobody had asked for it",
    "while the others slept",
    "for less than it was worth",
    "near the old customs house",
    "and thought no more about it",
    "as her mother had done",
    "on the second floor of the station",
]
NAMES = [
    "Ada",
    "Bruno",
    "Chloe",
    "Dmitri",
    "Elif",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Keiko",
    "Lars",
    "Mona",
    "Nadia",
    "Otto",
    "Priya",
]
TOWNS = [
    "Aarhus",
    "Brno",
    "Cork",
    "Delft",
    "Evora",
    "Ghent",
    "Haifa",
    "Izmir",
    "Jena",
    "Kobe",
    "Lima",
    "Malmo",
]
OPENERS = ("", "", "", "Later, ", "In those days ", "To be fair, ", "That winter ", "Nobody knows why ")

PROSE = {
    "chinese": (
        "老木匠每天清晨打开店门，先把昨天的刨花扫进竹筐，再烧一壶热水。",
        "学校旁边的小书店只卖旧书，老板记得每一位客人喜欢什么。",
        "下雨的时候，孩子们把纸船放进水沟，跟着它一直跑到桥下。",
        "他用了三年时间学会修理钟表，现在镇上的大钟由他负责。",
        "市场里最热闹的是卖豆腐的摊子，不到九点就已经卖完了。",
        "奶奶说，院子里的柿子树比她还要大二十岁，每年秋天都结满果子。",
    ),
    "japanese": (
        "駅前の小さなパン屋は、朝六時になると灯りがつきます。",
        "祖父は毎日同じ道を歩き、同じベンチに座って新聞を読んでいました。",
        "雨がやんだので、子どもたちは長靴をはいて川のほうへ走っていった。",
        "このカメラは古いけれど、まだきれいな写真が撮れると彼女は言った。",
        "図書館の窓から見える海は、季節によってまったく違う色になる。",
    ),
    "korean": (
        "할머니는 시장에서 사 온 배추로 김치를 담그셨다.",
        "우리 동네 도서관은 월요일마다 문을 닫지만 마당은 언제나 열려 있다.",
        "버스를 놓친 학생은 강가를 따라 집까지 걸어갔다.",
        "그 시계방 주인은 고장 난 시계를 보면 그냥 지나치지 못한다.",
        "비가 그치자 아이들이 골목으로 뛰어나왔다.",
    ),
    "arabic": (
        "يفتح النجار دكانه كل صباح قبل شروق الشمس بقليل.",
        "كانت المكتبة الصغيرة تقع بجانب المدرسة ولا تبيع إلا الكتب القديمة.",
        "عندما توقف المطر خرج الأطفال إلى الزقاق وهم يضحكون.",
        "تعلم أخي إصلاح الساعات في ثلاث سنوات من رجل عجوز في الميناء.",
        "في السوق رائحة الخبز والقهوة تصل إلى آخر الشارع.",
    ),
    "russian": (
        "Старый лодочник чинил сети и слушал радио до самого вечера.",
        "В нашей библиотеке по понедельникам моют окна, и читатели ждут во дворе.",
        "После дождя дети побежали к реке пускать бумажные корабли.",
        "Моя тётя собирает пуговицы и помнит, откуда взялась каждая.",
        "На рынке лучше всего пахнет там, где продают сушёные яблоки.",
    ),
    "greek": (
        "Ο παλιός ξυλουργός ανοίγει το μαγαζί του πριν βγει ο ήλιος.",
        "Τα παιδιά έτρεξαν στην παραλία μόλις σταμάτησε η βροχή.",
        "Η γιαγιά μου θυμάται το όνομα κάθε καραβιού στο λιμάνι.",
    ),
    "hebrew": (
        "הנגר הזקן פותח את החנות שלו לפני הזריחה.",
        "אחרי הגשם רצו הילדים אל הנחל עם סירות נייר.",
        "בספרייה הקטנה ליד בית הספר יש רק ספרים ישנים.",
    ),
    "hindi": (
        "बूढ़ा बढ़ई हर सुबह सूरज निकलने से पहले अपनी दुकान खोलता है।",
        "बारिश रुकते ही बच्चे काग़ज़ की नाव लेकर नदी की ओर दौड़ पड़े।",
        "हमारे मोहल्ले का पुस्तकालय सोमवार को बंद रहता है।",
    ),
    "thai": (
        "ช่างไม้เปิดร้านทุกเช้าก่อนพระอาทิตย์ขึ้น",
        "พอฝนหยุดตกเด็กๆก็วิ่งไปที่แม่น้ำพร้อมเรือกระดาษ",
        "คุณยายจำชื่อเรือทุกลำในท่าเรือได้",
    ),
    "georgian": (
        "ძველი დურგალი ყოველ დილით აღებს თავის სახელოსნოს.",
        "წვიმის შემდეგ ბავშვები მდინარისკენ გაიქცნენ.",
    ),
}


def sentence(dice: random.Random) -> str:
    """Return an English sentence."""
    opener = dice.choice(OPENERS)
    words = (
        f"{opener}{dice.choice(SUBJECTS)} {dice.choice(VERBS)} {dice.choice(OBJECTS)} {dice.choice(ENDINGS)}"
    )
    return words[0].upper() + words[1:] + "."


def prose(dice: random.Random, sentences: int) -> str:
    """Return English sentences in paragraphs of three to five."""
    paragraphs, left = [], sentences
    while left > 0:
        size = min(left, dice.randint(3, 5))
        paragraphs.append(" ".join(sentence(dice) for _ in range(size)))
        left -= size
    return "\n\n".join(paragraphs)


def phrase(dice: random.Random, words: int) -> str:
    """Return English words out of a sentence."""
    found: list[str] = []
    while len(found) < words:
        found += sentence(dice).lower().rstrip(".").split()
    begin = dice.randint(0, len(found) - words)
    return " ".join(found[begin : begin + words])


def foreign(dice: random.Random, language: str, sentences: int) -> str:
    """Return sentences of another language, none twice in a row."""
    kept = PROSE[language]
    order = [s for _ in range(sentences // len(kept) + 1) for s in dice.sample(kept, len(kept))]
    return ("" if language in ("chinese", "japanese") else " ").join(order[:sentences])
