use super::*;
use proptest::prelude::*;

fn terms(text: &str, language: &str) -> Vec<String> {
    let mut out = Vec::new();
    Analyzer::new(language).unwrap().terms(text, |term, _| out.push(term.to_owned()));
    out
}

fn asked(query: &str) -> Vec<String> {
    Analyzer::new("english").unwrap().query_terms(query)
}

#[test]
fn words_are_folded_and_stemmed() {
    assert_eq!(terms("The Running dogs' résumés", "english"), ["the", "run", "dog", "resum"]);
    assert_eq!(terms("Ich ging über die Straßen", "german"), ["ich", "ging", "uber", "die", "strass"]);
    assert_eq!(terms("DON’T", "english"), ["don't"]);
    assert_eq!(terms("Alice's", "english"), terms("alice", "english"));
    assert_eq!(terms("ISTANBUL'da", "turkish")[0], terms("Istanbul'da", "turkish")[0]);
}

#[test]
fn identifiers_are_kept_whole_and_split() {
    for (text, expected) in [
        ("alice.smith@acme.io", "alice.smith@acme.io alic smith acm io"),
        ("order_2024_001", "order_2024_001 order 2024 001"),
        ("/etc/app/conf.bak", "etc/app/conf.bak etc app conf bak"),
        ("v1.2.3", "v1.2.3 v1 2 3"),
        ("TKT-100", "tkt-100 tkt 100"),
        ("getUserName", "getusernam get user name"),
        ("well-known", "well-known well known"),
        ("1,234,567.5", "1234567.5 1 234 567 5"),
        ("U.S.A.", "usa"),
        ("C++", "c++ c"),
        ("l'homme", "l'homme l homm"),
        ("https://acme.io/a?b=1", "https://acme.io/a?b=1 https acm io a b 1"),
        (
            "550e8400-e29b-41d4-a716-446655440000",
            "550e8400-e29b-41d4-a716-446655440000 550e8400 e29b 41d4 a716 446655440000",
        ),
        ("+1 (555) 010-2233", "15550102233 5550102233 1 555 010-2233 010 2233"),
    ] {
        assert_eq!(terms(text, "english").join(" "), expected);
    }
}

#[test]
fn a_query_asks_for_what_carries_meaning() {
    assert_eq!(asked("Where is the cat?"), ["cat"]);
    assert_eq!(asked("to be or not to be"), ["to", "be", "or", "not", "to", "be"]);
    assert_eq!(asked("who"), ["who"]);
    assert_eq!(asked("is the WHO in the US?"), ["who", "us"]);
    assert_eq!(asked("status of TKT-100"), ["status", "tkt-100"]);
    assert_eq!(asked("a well-known cat cat"), ["well-known", "well", "known", "cat", "cat"]);
    assert_eq!(asked("東京"), ["東京"]);
    assert_eq!(asked("猫"), ["猫"]);
    assert_eq!(asked("?!"), Vec::<String>::new());
}

/// A text in its language, and words of it as written.
const TEXTS: [(&str, &[&str]); 17] = [
    ("Der schnelle braune Fuchs springt über den faulen Hund.", &["schnelle", "Fuchs", "über", "faulen"]),
    ("La volpe salta sopra l'acqua della città.", &["volpe", "acqua", "città"]),
    ("Быстрая коричневая лисица ещё прыгает.", &["Быстрая", "лисица", "ещё", "еще", "ПРЫГАЕТ"]),
    ("الثعلب البني السريع يقفز فوق الكلب", &["الثعلب", "السريع", "الكلب"]),
    ("כֶּלֶב קופץ מעל השועל", &["כלב", "קופץ", "השועל"]),
    ("तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है", &["भूरी", "लोमड़ी", "कुत्ते"]),
    ("দ্রুত বাদামী শিয়াল লাফ দেয়", &["বাদামী", "শিয়াল"]),
    ("வேகமான பழுப்பு நரி குதிக்கிறது", &["பழுப்பு", "நரி"]),
    ("敏捷的棕色狐狸跳过了懒狗", &["狐狸", "懒狗", "跳", "棕色狐狸"]),
    ("素早い茶色の狐が怠け者の犬を飛び越えるカフェ", &["狐", "怠け者", "犬", "カフェ"]),
    ("서울에서 만난 친구", &["서울", "서울에서", "친구"]),
    ("สุนัขจิ้งจอกสีน้ำตาลกระโดด", &["สุนัข", "จิ้งจอก", "น้ำตาล"]),
    ("ໝາຈອກສີນ້ຳຕານ", &["ນ້ຳ", "ຈອກ"]),
    ("ខ្ញុំស្រឡាញ់ភាសាខ្មែរ", &["ភាសា", "ខ្មែរ"]),
    ("ကျွန်ုပ်သည်မြန်မာစာ", &["မြန်မာ"]),
    ("Η γρήγορη αλεπού πηδάει", &["γρήγορη", "αλεπού", "αλεπου"]),
    ("Party 🎉 mit 👩‍🚀 und 👍🏽", &["🎉", "👩‍🚀", "👍🏽", "👍"]),
];

#[test]
fn a_text_is_found_by_a_word_of_it_in_every_script_and_language() {
    for language in languages() {
        let analyzer = Analyzer::new(language).unwrap();
        for (text, words) in TEXTS {
            let indexed = terms(text, language);
            for word in words {
                let asked = analyzer.query_terms(word);
                let found = asked.iter().any(|term| indexed.contains(term));
                assert!(found, "{language}: {word} → {asked:?} in {indexed:?}");
            }
            assert!(!analyzer.query_terms("zzz 鯨 고래 🐳").iter().any(|term| indexed.contains(term)));
        }
    }
}

#[test]
fn identifiers_match_themselves_only() {
    for (stored, query) in [
        ("TKT-1000", "TKT-100"),
        ("/etc/app/conf.bak", "/etc/app/conf"),
        ("alice.smith@acme.io", "alice@acme.io"),
        ("v1.2.30", "v1.2.3"),
        ("order_2024_0010", "order_2024_001"),
    ] {
        let (there, other) = (terms(query, "english"), terms(stored, "english"));
        assert!(asked(query).iter().all(|term| !other.contains(term)), "{query} in {other:?}");
        assert!(asked(query).iter().all(|term| there.contains(term)));
        assert!(asked(stored).iter().all(|term| !there.contains(term)), "{stored} in {there:?}");
    }
    let (one, other) = (terms("+1 (555) 010-2233", "english"), asked("5550102233"));
    assert!(other.iter().all(|term| one.contains(term)));
}

#[test]
fn nothing_is_cut_off_in_silence() {
    let long = "x".repeat(1 << 20);
    let found = terms(&long, "english");
    assert_eq!(found.len(), 1);
    assert!(found[0].len() <= LONGEST_TERM);
    assert_ne!(found, terms(&format!("{long}y"), "english"));
    let text = "word ".repeat(200_000);
    assert_eq!(terms(&text, "english").len(), 200_000);
    assert!(terms(&"漢".repeat(100_000), "english").len() > 100_000);
}

#[test]
fn every_language_is_known_by_name() {
    assert_eq!(languages().len(), 18);
    assert!(Analyzer::new("klingon").is_none());
    for language in languages() {
        assert!(!terms("words", language).is_empty());
    }
}

proptest! {
    #[test]
    fn any_text_has_bounded_terms_and_asks_for_itself(text in "\\PC{0,60}", language in 0usize..18) {
        let analyzer = Analyzer::new(languages()[language]).unwrap();
        let mut indexed = HashSet::new();
        analyzer.terms(&text, |term, _| { indexed.insert(term.to_owned()); });
        prop_assert!(indexed.iter().all(|term| !term.is_empty() && term.len() <= LONGEST_TERM));
        prop_assert!(analyzer.query_terms(&text).iter().all(|term| indexed.contains(term)));
    }

    #[test]
    fn no_stemmer_panics_on_letters_of_its_script(
        text in "[\\p{Latin}\\p{Greek}\\p{Cyrillic}\\p{Arabic}\\p{Tamil}']{1,12}( \\p{Arabic}{1,12}| \\p{Tamil}{1,12}| \\p{Greek}{1,12}| [a-zäöåüßçğışêñ']{1,14}){0,6}",
        language in 0usize..18,
    ) {
        Analyzer::new(languages()[language]).unwrap().terms(&text, |_, _| {});
    }
}
