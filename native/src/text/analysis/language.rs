//! The languages there is a stemmer for, and the words that carry no meaning alone in each.

use super::script::Script;
use rust_stemmers::Algorithm;

pub struct Language {
    pub name: &'static str,
    pub algorithm: Algorithm,
    pub script: Script,
    /// Function words, blank separated, as they are written.
    pub stop_words: &'static str,
}

impl Language {
    pub fn named(name: &str) -> Option<&'static Self> {
        LANGUAGES.iter().find(|language| language.name == name)
    }
}

/// The stemmer for a word by its script, where the index's own language is written in another.
pub fn by_script(script: Script) -> Option<Algorithm> {
    match script {
        Script::Latin => Some(Algorithm::English),
        Script::Greek => Some(Algorithm::Greek),
        Script::Cyrillic => Some(Algorithm::Russian),
        Script::Arabic => Some(Algorithm::Arabic),
        Script::Tamil => Some(Algorithm::Tamil),
        Script::Digit | Script::Other => None,
    }
}

const fn latin(name: &'static str, algorithm: Algorithm, stop_words: &'static str) -> Language {
    Language { name, algorithm, script: Script::Latin, stop_words }
}

pub static LANGUAGES: [Language; 18] = [
    Language {
        name: "arabic",
        algorithm: Algorithm::Arabic,
        script: Script::Arabic,
        stop_words: "في من على إلى الى عن مع هذا هذه ذلك تلك هو هي هم أنا أنت نحن كان كانت يكون ما ماذا من متى أين \
                     كيف لماذا هل لا لم لن إن أن أو و ثم قد كل بعض عند بين حتى إذا لكن التي الذي الذين",
    },
    latin(
        "danish",
        Algorithm::Danish,
        "og i at det en et den til er som på de med han af for ikke der var mig sig men vi jeg du hun har havde om \
         eller hvad hvem hvor hvornår hvorfor hvordan kan skal vil blev ud ind over under efter fra ved hans hendes \
         min din dette disse denne også man så nu når",
    ),
    latin(
        "dutch",
        Algorithm::Dutch,
        "de het een en van in is dat die te op zijn was met voor niet aan er om ook als dan maar of ik je jij hij zij \
         ze we wij jullie u hun hem haar mijn jouw wat wie waar wanneer waarom hoe welke kan zal zou had heeft hebben \
         ben bent door over bij uit tot naar dit deze nog geen wel worden wordt werd",
    ),
    latin(
        "english",
        Algorithm::English,
        "a an the and or but if then than so as of at by for from in into on onto off out over under up down to with \
         without about between through during before after above below again further once here there i me my mine \
         myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself \
         it its itself they them their theirs themselves this that these those who whom whose which what when where \
         why how am is are was were be been being have has had having do does did doing will would shall should can \
         could may might must not no nor only own same too very just i'm i've i'd i'll you're you've you'd you'll \
         he's he'd he'll she's she'd she'll it's it'd it'll we're we've we'd we'll they're they've they'd they'll \
         that's there's here's what's who's where's when's why's how's isn't aren't wasn't weren't haven't hasn't \
         hadn't don't doesn't didn't won't wouldn't shan't shouldn't can't cannot couldn't mustn't let's",
    ),
    latin(
        "finnish",
        Algorithm::Finnish,
        "ja on ei että se hän olla oli ovat ole en et emme ette eivät minä sinä me te he tämä tuo nämä nuo joka mikä \
         mitä kuka missä milloin miksi miten kun jos niin kuin mutta tai myös vain vielä jo nyt sitten sen sitä hänen \
         minun sinun meidän teidän heidän ollut olen olet kanssa",
    ),
    latin(
        "french",
        Algorithm::French,
        "le la les l un une des du de d à au aux et ou où mais donc or ni car que qu qui quoi dont ce c cet cette ces \
         il elle ils elles je j tu nous vous on me m te t se s lui leur mon ma mes ton ta tes son sa ses notre nos \
         votre vos leurs en y dans sur sous par pour avec sans est sont était étaient être été ai as a avons avez ont \
         avait ne n pas plus quand comment pourquoi quel quelle quels quelles si comme",
    ),
    latin(
        "german",
        Algorithm::German,
        "der die das den dem des ein eine einen einem einer eines und oder aber wenn dann als wie so in im an am auf \
         aus bei mit nach von vom vor zu zum zur über unter durch für gegen ohne um ich du er sie es wir ihr mich mir \
         dich dir ihn ihm uns euch ihnen mein dein sein unser euer dieser diese dieses jener wer was wo wann warum \
         welche welcher welches ist sind war waren bin bist sein gewesen hat haben hatte hatten wird werden wurde \
         wurden kann können soll sollen will muss nicht kein keine auch nur noch schon sehr dass da",
    ),
    Language {
        name: "greek",
        algorithm: Algorithm::Greek,
        script: Script::Greek,
        stop_words: "ο η το οι τα του της των τον την τους τις και ή αλλά αν να θα δεν δε μη μην με σε στο στη στην \
                     στον στα από για ως που πως πού πώς τι ποιος ποια ποιο πότε γιατί είναι ήταν είμαι έχει έχουν \
                     είχε εγώ εσύ αυτός αυτή αυτό εμείς εσείς αυτοί μου σου μας σας ένας μια ένα",
    },
    latin(
        "hungarian",
        Algorithm::Hungarian,
        "a az egy és vagy de ha hogy is nem ne meg el ki be fel le volt van vannak lesz lett ez azt ezt ezek azok én \
         te ő mi ti ők engem téged őt aki ami amely mit ki hol mikor miért hogyan csak már még mint után előtt alatt \
         között",
    ),
    latin(
        "italian",
        Algorithm::Italian,
        "il lo la i gli le l un uno una di del dello della dei degli delle dell a al allo alla ai agli alle all da dal \
         dallo dalla dai dagli dalle dall in nel nello nella nei negli nelle nell su sul sullo sulla sui sugli sulle \
         sull con per tra fra e ed o ma se che chi cui come dove quando perché quale quali io tu lui lei noi voi loro \
         mi ti si ci vi ne mio mia tuo tua suo sua nostro vostro questo questa questi queste quello quella è sono era \
         erano essere stato ho hai ha abbiamo avete hanno aveva non più anche",
    ),
    latin(
        "norwegian",
        Algorithm::Norwegian,
        "og i jeg det at en et den til er som på de med han av ikke der så var meg seg men ett har om vi min mitt ha \
         hadde hun nå over da ved fra du ut sin dem oss opp kan hans hvor eller hva skal selv her alle vil bli ble \
         dette for hvem når hvorfor hvordan",
    ),
    latin(
        "portuguese",
        Algorithm::Portuguese,
        "o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela pelos pelas para com sem sob sobre \
         e ou mas se que quem qual quais onde quando como porque eu tu ele ela nós vós eles elas você vocês me te lhe \
         nos lhes meu minha teu tua seu sua nosso nossa este esta isto esse essa isso aquele aquela é são era eram ser \
         foi foram está estão tem têm tinha não mais também já ao à aos às",
    ),
    latin(
        "romanian",
        Algorithm::Romanian,
        "și si în in la de pe cu din pentru care ce cine unde când cum de că ca să sa nu mai este e sunt era erau fi \
         fost am ai are au avea un o unui unei niște al a ale ai lui ei lor eu tu el ea noi voi ei ele mă te se ne vă \
         îi le acest această acel acea sau dar dacă",
    ),
    Language {
        name: "russian",
        algorithm: Algorithm::Russian,
        script: Script::Cyrillic,
        stop_words: "и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне \
                     было вот от меня еще нет о из ему когда даже ну ли если или ни быть был была были него до вас \
                     нибудь уж вам ведь там потом себя ничего ей они тут где есть надо ней для мы тебя их чем сам \
                     чтоб без чего тоже себе под будет тогда кто этот того потому этого какой ним здесь этом мой тем \
                     чтобы нее это эта эти при об почему который которая которые",
    },
    latin(
        "spanish",
        Algorithm::Spanish,
        "el la los las un una unos unas de del a al en por para con sin sobre entre y e o u pero si que quien quién \
         quienes cual cuál cuales donde dónde cuando cuándo como cómo porque por qué yo tú él ella nosotros vosotros \
         ellos ellas usted ustedes me te se nos os le les lo mi mis tu tus su sus nuestro nuestra este esta esto estos \
         estas ese esa eso aquel aquella es son era eran ser fue fueron está están estar he ha han había no más también \
         ya muy",
    ),
    latin(
        "swedish",
        Algorithm::Swedish,
        "och i att det en ett den till är som på de med han av för inte der var mig sig men vi jag du hon har hade om \
         eller vad vem var när varför hur kan ska vill blev ut in över under efter från vid hans hennes min din detta \
         dessa denna också man så nu",
    ),
    Language {
        name: "tamil",
        algorithm: Algorithm::Tamil,
        script: Script::Tamil,
        stop_words: "ஒரு என்று மற்றும் இந்த இது என்ற கொண்டு என்பது பல ஆகும் அல்லது அவர் நான் உள்ள அந்த இவர் என \
                     முதல் என்ன இருந்து சில என் போன்ற வேண்டும் வந்து இதன் அது அவன் எப்படி எங்கே யார் ஏன்",
    },
    latin(
        "turkish",
        Algorithm::Turkish,
        "ve veya ya da de ile için bir bu şu o ben sen biz siz onlar beni seni onu bizi sizi ki mi mı mu mü ne kim \
         nerede nasıl neden niçin ne zaman hangi ama fakat çünkü gibi kadar daha çok en her hiç değil var yok idi \
         olan olarak oldu ise",
    ),
];
